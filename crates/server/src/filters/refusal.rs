//! Why something is refused, in RedisBloom's words where it has some.

use std::fmt;

/// Why a change or a question is refused. Shown as the error of the Redis protocol.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// There is no such filter.
    NotFound,
    /// There already is one.
    Exists,
    /// It is a filter of the other kind.
    WrongType,
    /// The filter does not grow and is full.
    Full,
    /// It has grown too often.
    GrownTooOften,
    /// Part of a dump that is not one, or is damaged.
    BadChunk,
    /// Rows that a client has made up are too many to be told apart.
    NoDump,
    /// The names of filters take as much memory as they may.
    TooManyNames,
    /// A name longer than a store's key may be.
    NameTooLong,
    /// The store's error.
    Store(sidebloom::Error),
}

/// The outcome, or why it is refused.
pub type Result<T> = std::result::Result<T, Refusal>;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotFound => f.write_str("ERR not found"),
            Refusal::Exists => f.write_str("ERR item exists"),
            Refusal::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Refusal::Full => f.write_str("ERR non scaling filter is full"),
            Refusal::GrownTooOften => f.write_str("ERR Maximum expansions reached"),
            Refusal::BadChunk => f.write_str("ERR received bad data"),
            Refusal::NoDump => f.write_str("ERR this filter cannot be dumped: too many hashes begin alike"),
            Refusal::TooManyNames => {
                f.write_str("OOM command not allowed: the names of the filters take all memory that they may")
            }
            Refusal::NameTooLong => f.write_str("ERR the name of the filter is too long"),
            Refusal::Store(error) => write!(f, "ERR {error}"),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refusal::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl From<sidebloom::Error> for Refusal {
    fn from(error: sidebloom::Error) -> Self {
        Refusal::Store(error)
    }
}
