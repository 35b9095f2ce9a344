//! Files with a hole at the end: zeros that take no memory.

use super::disk::{Contents, File};
use super::sim_fs::SimFs;
use std::path::Path;
use std::sync::Arc;

impl Contents {
    /// The length of the file, its hole included.
    pub fn len(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add(self.hole)
    }

    /// The bytes of a part of the file: existing bytes, which begin at `offset`, and zeros in the hole.
    pub fn copy_to(&self, buf: &mut [u8], offset: u64) -> usize {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = self.bytes.get(start..).unwrap_or_default();
        let copied = found.len().min(buf.len());
        buf[..copied].copy_from_slice(&found[..copied]);
        let zeros = self.len().saturating_sub(offset).min(buf.len() as u64) as usize;
        if zeros > copied {
            buf[copied..zeros].fill(0);
        }
        zeros.max(copied)
    }
}

impl SimFs {
    /// Makes a file longer without writing bytes. It must exist, and nobody may append to it.
    pub fn lengthen(&self, path: impl AsRef<Path>, len: u64) {
        let Some(bytes) = self.read(&path) else { return };
        let hole = len.saturating_sub(bytes.len() as u64);
        let contents = Contents { hole, ..Contents::durable(Arc::new(bytes)) };
        let file = Arc::new(File::new(contents));
        let disk = &mut *self.disk();
        for tree in [&mut disk.names, &mut disk.durable] {
            tree.files.insert(path.as_ref().to_path_buf(), Arc::clone(&file));
        }
    }
}
