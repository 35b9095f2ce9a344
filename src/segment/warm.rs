//! Loading the index into the block cache.

use super::reader::Segment;
use super::window::Window;
use crate::error::Result;

impl Segment {
    /// Loads the index partitions that are not cached yet, in large reads.
    pub fn warm_index(&self) -> Result<()> {
        let mut window = Window::default();
        for at in 0..self.top.len() {
            let handle = self.top.handle(at);
            if self.cache.index(self.id(), handle.offset).is_none() {
                let stored = window.stored(self, &self.top, at, false)?;
                self.keep_partition(handle, stored)?;
            }
        }
        Ok(())
    }
}
