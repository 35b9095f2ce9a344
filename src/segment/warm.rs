//! Loading the index into memory.

use super::read_ahead::ReadAhead;
use super::reader::Segment;
use crate::error::Result;

impl Segment {
    /// Loads the index partitions that are not in memory yet, in large reads.
    pub fn warm_index(&self) -> Result<()> {
        let mut window = ReadAhead::default();
        for at in 0..self.top.len() {
            if !self.has_partition(at) {
                let stored = window.stored(self, &self.top, at, false)?;
                self.keep_partition(at, stored)?;
            }
        }
        Ok(())
    }
}
