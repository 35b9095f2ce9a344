//! The filter in front of a memtable.

use crate::error::Result;
use crate::filter::{AtomicBloom, Verdict};
use crate::sync::atomic::{AtomicUsize, Ordering as Memory};

/// The filter is sized for entries of this many bytes, overhead included, …
const FILTER_BYTES_PER_ENTRY: u64 = 256;
/// … at this many bits each: 0.08 % false positives. Entries half as long get half the bits: still only 1 %.
const FILTER_BITS_PER_KEY: f64 = 16.0;
/// Number of entries beyond which a filter no longer grows (128 MiB of filter).
const FILTER_KEYS_MAX: u64 = 1 << 26;

/// The filter of a memtable. Holding only the filter keeps neither the entries in memory nor, once the
/// memtable is gone, the memory of a large filter. The filter then denies all keys: only an answer given
/// while the memtable existed counts (I1).
pub struct MemtableFilter {
    keys: AtomicBloom,
    /// Estimated memory of the entries.
    bytes: AtomicUsize,
}

impl MemtableFilter {
    /// A filter for `budget_bytes` of entries. More entries work, but give more false positives.
    pub(super) fn new(budget_bytes: u64) -> Result<Self> {
        let keys = (budget_bytes / FILTER_BYTES_PER_ENTRY).clamp(1, FILTER_KEYS_MAX);
        Ok(MemtableFilter { keys: AtomicBloom::new(keys, FILTER_BITS_PER_KEY)?, bytes: AtomicUsize::new(0) })
    }

    /// Adds the hash of a key or of a prefix, before its entry enters the memtable.
    #[inline]
    pub(super) fn insert(&self, hash: u64) {
        self.keys.insert(hash);
    }

    /// Counts the memory of an added entry.
    #[inline]
    pub(super) fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Memory::Relaxed);
    }

    /// Estimated memory of the entries, in bytes.
    #[inline]
    pub(super) fn entry_bytes(&self) -> usize {
        self.bytes.load(Memory::Relaxed)
    }

    /// Whether the memtable has no entry of a key with this hash.
    #[inline]
    pub fn denies(&self, hash: u64) -> bool {
        self.keys.probe(hash) == Verdict::Absent
    }

    /// Whether there is no entry that readers may see. Saves the filter probe of an empty memtable.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.entry_bytes() == 0 // Set by the first insert, before readers may see the entry.
    }

    /// Gives the memory back after the memtable is gone. Threads that keep the filter may still probe it, but
    /// must not rely on it.
    pub(super) fn retire(&self) {
        self.keys.clear();
    }

    /// Prefetches the filter line for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.keys.prefetch(hash);
    }
}
