//! Sorting the key hashes of a build, which may not fit in memory.

use super::format::{HashWidth, SORT};
use super::stored_hash::StoredHash;
use crate::error::Result;
use crate::fs::Fs;
use crate::sort::ExternalSorter;
use std::path::Path;
use std::sync::Arc;

/// Hashes in memory before they are written to a temporary file.
const MEMORY_BYTES: usize = 256 << 20;

/// Sorted hashes with their counts.
type CountedHashes<'s> = Box<dyn Iterator<Item = Result<(StoredHash, u64)>> + 's>;

/// Call order: `push* counted`.
pub(super) enum HashSorter {
    Narrow(ExternalSorter<u64>),
    Wide(ExternalSorter<u128>),
}

impl HashSorter {
    /// Keeps its temporary file in `dir`, which must exist.
    pub fn new(fs: &Arc<dyn Fs>, dir: &Path, width: HashWidth) -> Self {
        let (fs, path) = (Arc::clone(fs), dir.join(SORT));
        match width {
            HashWidth::Bits64 => HashSorter::Narrow(ExternalSorter::new(fs, path, MEMORY_BYTES)),
            HashWidth::Bits128 => HashSorter::Wide(ExternalSorter::new(fs, path, MEMORY_BYTES)),
        }
    }

    #[inline]
    pub fn push(&mut self, hash: StoredHash) -> Result<()> {
        match self {
            HashSorter::Narrow(sorter) => sorter.push(hash.0 as u64),
            HashSorter::Wide(sorter) => sorter.push(hash.0),
        }
    }

    /// Every hash once, ascending, with how often it was pushed.
    pub fn counted(&mut self) -> Result<CountedHashes<'_>> {
        Ok(match self {
            HashSorter::Narrow(sorter) => {
                let counted = sorter.counted()?;
                Box::new(counted.map(|pair| pair.map(|(hash, rows)| (StoredHash(hash.into()), rows))))
            }
            HashSorter::Wide(sorter) => {
                let counted = sorter.counted()?;
                Box::new(counted.map(|pair| pair.map(|(hash, rows)| (StoredHash(hash), rows))))
            }
        })
    }
}
