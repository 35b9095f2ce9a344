//! What a repair reports.

use crate::error::Error;
use std::fmt;
use std::ops::{Bound, RangeInclusive};
use std::path::PathBuf;

/// What [`repair`](crate::repair) found and did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Whether a new manifest was written; otherwise the store needed none.
    pub rebuilt: bool,
    /// Segments that the store has now.
    pub segments: u64,
    /// Entries in them.
    pub entries: u64,
    /// What could not be kept as it was, and why; the files are still there as `*.damaged`.
    pub set_aside: Vec<Error>,
    /// Length of the files that were set aside, in bytes. Most of their rows may be among those salvaged.
    pub bytes_set_aside: u64,
    /// Rows of damaged segments, tombstones included, that were written to new ones.
    pub rows_salvaged: u64,
    /// Data of damaged segments in which no row could be read, in bytes.
    pub bytes_unreadable: u64,
    /// Where rows are lost: there, a key may be missing, have an older value again, or be back although it was deleted.
    pub lost: Vec<LostRange>,
    /// What became of the logs; `None` when they were in order.
    pub logs: Option<LogSalvage>,
}

/// What [`repair`](crate::repair) salvaged from damaged logs. Nobody knows which keys the lost operations changed: any key may have an older
/// value, or be back after its deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogSalvage {
    /// Operations that were kept.
    pub operations_kept: u64,
    /// Unreadable bytes of the logs. The complete files are kept as `*.damaged`.
    pub bytes_unreadable: u64,
    /// Sequence numbers of the operations that are known to be lost. More may be lost after the last one kept.
    pub operations_lost: Vec<RangeInclusive<u64>>,
}

/// Keys whose newest entries may have been lost with a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// The damaged file, by the name that it had.
    pub file: PathBuf,
    /// Where the keys begin; unbounded when that is not known.
    pub first: Bound<Vec<u8>>,
    /// Where the keys end; unbounded when that is not known.
    pub last: Bound<Vec<u8>>,
}

impl fmt::Display for LostRange {
    /// In words, the keys with escapes: `keys from "a" to before "m\xff" (store/000007.segment)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.first, &self.last) {
            (Bound::Unbounded, Bound::Unbounded) => write!(f, "any key")?,
            (first, last) => {
                write!(f, "keys")?;
                match first {
                    Bound::Included(key) => write!(f, " from \"{}\"", key.escape_ascii())?,
                    Bound::Excluded(key) => write!(f, " after \"{}\"", key.escape_ascii())?,
                    Bound::Unbounded => {}
                }
                match last {
                    Bound::Included(key) => write!(f, " up to \"{}\"", key.escape_ascii())?,
                    Bound::Excluded(key) => write!(f, " before \"{}\"", key.escape_ascii())?,
                    Bound::Unbounded => {}
                }
            }
        }
        write!(f, " ({})", self.file.display())
    }
}
