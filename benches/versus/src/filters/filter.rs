//! The interface of every filter in the comparison.

use crate::error::Result;

/// Keys in a batch.
pub const BATCH_KEYS: usize = 32;

/// A filter over 64-bit hashes.
pub trait Filter {
    /// The size of its bits.
    fn bytes(&self) -> usize;

    /// A copy with its own memory.
    fn copy(&self) -> Result<Box<dyn Filter>>;

    /// The hash to probe for a key: the key itself, unless the filter hashes it first. Not timed.
    fn prepared(&self, key: u64) -> u64 {
        key
    }

    /// False only for an absent key.
    fn may_contain(&self, prepared: u64) -> bool;

    /// How many of these keys may be present, by the filter's fastest batch probe; `None` if it has none.
    fn batched(&self, _keys: &[u64], _prepared: &[u64]) -> Option<usize> {
        None
    }
}
