//! Unreadable blocks, and the keys that they may hold.

use crate::error::Error;

/// Neighbouring unreadable data blocks, with the keys that they may hold.
#[derive(Debug, Clone)]
pub struct DamagedBlocks {
    /// The first error.
    pub error: Error,
    /// The offset of the first one, or of the index partition that lists them.
    pub offset: u64,
    /// How many blocks; `None` if unknown, because an index partition is damaged.
    pub blocks: Option<u64>,
    /// The blocks' keys are greater than this; `None` if they may begin with the first key.
    pub after: Option<Vec<u8>>,
    /// The greatest key that they may hold.
    pub up_to: Vec<u8>,
}

impl DamagedBlocks {
    /// The error, including which keys the blocks may hold.
    pub fn described(self) -> Error {
        let after = self
            .after
            .map_or(String::new(), |after| format!("greater than \"{}\" and ", after.escape_ascii()));
        let keys = format!("{after}up to \"{}\"", self.up_to.escape_ascii());
        describe(self.error, self.offset, &count_blocks(self.blocks), &keys)
    }
}

/// A number of blocks; `None` if unknown.
pub fn count_blocks(blocks: Option<u64>) -> String {
    match blocks {
        Some(1) => "one block".to_owned(),
        Some(blocks) => format!("{blocks} blocks"),
        None => "all blocks of an index partition".to_owned(),
    }
}

/// The error that `what`, at `offset`, cannot be read, including which `keys` it may hold.
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
