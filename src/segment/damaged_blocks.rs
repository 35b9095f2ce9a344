//! Blocks that cannot be read, and the keys that they may hold.

use crate::error::Error;

/// Neighbouring data blocks that cannot be read, with the keys that they may hold.
#[derive(Debug, Clone)]
pub struct DamagedBlocks {
    /// The first error.
    pub error: Error,
    /// Where the first one begins, or the index partition that lists them.
    pub offset: u64,
    /// How many blocks; `None` if an index partition is damaged, so that nothing tells.
    pub blocks: Option<u64>,
    /// The blocks' keys are greater than this; `None` if they may begin with the first key.
    pub after: Option<Vec<u8>>,
    /// The greatest key that they may hold.
    pub up_to: Vec<u8>,
}

impl DamagedBlocks {
    /// The error, which also says which keys they may hold.
    pub fn described(self) -> Error {
        let after = self
            .after
            .map_or(String::new(), |after| format!("greater than \"{}\" and ", after.escape_ascii()));
        let keys = format!("{after}up to \"{}\"", self.up_to.escape_ascii());
        describe(self.error, self.offset, &count_blocks(self.blocks), &keys)
    }
}

/// A number of blocks; `None` if nothing tells how many.
pub fn count_blocks(blocks: Option<u64>) -> String {
    match blocks {
        Some(1) => "one block".to_owned(),
        Some(blocks) => format!("{blocks} blocks"),
        None => "all blocks of an index partition".to_owned(),
    }
}

/// An error that `what`, at `offset`, cannot be read, which also says which `keys` it may hold.
pub fn describe(error: Error, offset: u64, what: &str, keys: &str) -> Error {
    let unreadable = format!("not readable: {what} with keys {keys}");
    match error {
        Error::Corruption { file, offset, what } => {
            Error::Corruption { file, offset, what: format!("{what}; {unreadable}") }
        }
        Error::Io { path, source, .. } => Error::corruption(path, offset, format!("{source}; {unreadable}")),
        other => other,
    }
}
