//! What hides entries of a merge: range tombstones are not entries, so the merge does not meet them.

use crate::error::Result;
use crate::key::{Seq, SplitKey};

/// Tells which entries are deleted by range tombstones.
pub trait Mask: Send + Sync {
    /// Whether an entry of the key is deleted.
    ///
    /// # Errors
    /// Those of reading the range tombstones.
    fn hides(&mut self, key: SplitKey<'_>, seq: Seq) -> Result<bool>;
}
