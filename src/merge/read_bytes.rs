//! How much a merge has read.

use super::MergeCursor;
use super::source::MergeSource;

impl MergeCursor {
    /// Bytes of blocks that its cursors have read from files.
    pub fn read_bytes(&self) -> u64 {
        self.inputs.all.iter().map(MergeSource::read_bytes).fold(0, u64::saturating_add)
    }
}
