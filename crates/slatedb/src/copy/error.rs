//! Why a copy failed.

/// Why a copy failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The error of SlateDB.
    #[error("SlateDB: {0}")]
    SlateDb(#[from] std::sync::Arc<slatedb::Error>),
    /// The error of the store.
    #[error(transparent)]
    Store(#[from] sidebloom::Error),
    /// The target already has rows, which a copy would mix with.
    #[error("{target} already has rows; copy to an empty one")]
    NotEmpty {
        /// The target of the copy.
        target: &'static str,
    },
    /// The store has a row with the empty key, which SlateDB refuses.
    #[error(
        "the store has a row with the empty key, which SlateDB refuses; delete it or give it another key"
    )]
    EmptyKey,
    /// The copy's blocking task panicked, or its runtime was shut down.
    #[error("the copy was interrupted: {what}")]
    Interrupted {
        /// What happened.
        what: String,
    },
}

impl From<slatedb::Error> for Error {
    fn from(error: slatedb::Error) -> Self {
        Error::SlateDb(error.into())
    }
}

impl From<tokio::task::JoinError> for Error {
    fn from(error: tokio::task::JoinError) -> Self {
        Error::Interrupted { what: error.to_string() }
    }
}
