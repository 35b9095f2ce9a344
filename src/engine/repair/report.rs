//! The report of a repair.

use crate::error::Error;
use std::fmt;
use std::ops::{Bound, RangeInclusive};
use std::path::PathBuf;

/// What [`repair`](crate::repair) found and did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Whether a new manifest was written.
    pub rebuilt: bool,
    /// Segments of the repaired store.
    pub segments: u64,
    /// Entries in them.
    pub entries: u64,
    /// Files set aside, and why. They are kept as `*.damaged`.
    pub set_aside: Vec<Error>,
    /// Total length of the files set aside, in bytes. Most of their rows may have been salvaged.
    pub bytes_set_aside: u64,
    /// Rows of damaged segments, tombstones included, that were written to new segments.
    pub rows_salvaged: u64,
    /// Unreadable data of damaged segments, in bytes.
    pub bytes_unreadable: u64,
    /// The ranges where rows were lost. A key there may be missing, outdated, or back after its deletion.
    pub lost: Vec<LostRange>,
    /// Keyspaces that had lost their names and options. They have the names that are in their segments, or
    /// `keyspace` and a number, and the options of the store.
    pub keyspaces_named: Vec<String>,
    /// What was salvaged from damaged logs; `None` if they were intact.
    pub logs: Option<LogSalvage>,
}

/// What [`repair`](crate::repair) salvaged from damaged logs. Nobody knows which keys the lost operations
/// changed: any key may have an older value, or be back after its deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogSalvage {
    /// Operations kept.
    pub operations_kept: u64,
    /// Unreadable bytes of the logs. The complete files are kept as `*.damaged`.
    pub bytes_unreadable: u64,
    /// Sequence numbers of operations known to be lost. More may be lost after the last one kept.
    pub operations_lost: Vec<RangeInclusive<u64>>,
}

/// A range of keys whose newest entries may be lost with a part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRange {
    /// The damaged file, under its original name.
    pub file: PathBuf,
    /// The lower bound of the range; unbounded if unknown.
    pub first: Bound<Vec<u8>>,
    /// The upper bound of the range; unbounded if unknown.
    pub last: Bound<Vec<u8>>,
}

impl fmt::Display for LostRange {
    /// In words, with escaped keys: `keys from "a" to before "m\xff" (store/000007.segment)`.
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
