//! How much a cursor has walked and read.

use super::SegmentCursor;

impl SegmentCursor {
    /// Bytes of the blocks entered so far.
    pub fn walked(&self) -> u64 {
        self.walked
    }

    /// Counts the bytes of blocks that the walk has entered in other segments.
    pub fn add_walked(&mut self, bytes: u64) {
        self.walked += bytes;
    }

    /// Bytes of blocks that it has read from the file.
    pub fn read_bytes(&self) -> u64 {
        self.window.read_bytes()
    }
}
