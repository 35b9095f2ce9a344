//! A disk cache of fetched blocks: a file of limited size in which the newest blocks replace the oldest, as
//! in a ring. It belongs to this process and starts empty.

use crate::error::{Error, Result};
use crate::private_files;
use sidebloom::filter::codec::crc32;
use sidebloom::fs::Process;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum memory per block in the index, in bytes: the index of small blocks must not outgrow the cache.
const BLOCK_BYTES_MIN: u64 = 512;

pub(crate) struct DiskCache {
    file: File,
    path: PathBuf,
    bytes_max: u64,
    ring: Mutex<Ring>,
    /// The process that owns the file. A forked child neither uses nor removes it.
    owner: Process,
}

#[derive(Default)]
struct Ring {
    /// A block's place, length and CRC, by object and offset.
    blocks: HashMap<(u64, u64), (u64, u32, u32)>,
    /// The keys of the blocks by place.
    places: BTreeMap<u64, (u64, u64)>,
    /// Numbers of the objects.
    objects: HashMap<String, u64>,
    next: u64,
}

impl DiskCache {
    /// A cache of at most `bytes_max` bytes in a new file in `dir`.
    pub fn create(dir: &Path, bytes_max: u64) -> Result<Self> {
        let created = private_files::create_unique(dir, |unique| format!("blocks-{unique}.cache"));
        let (file, path) = created.map_err(Error::file("create a file in", dir))?;
        Ok(DiskCache { file, path, bytes_max, ring: Mutex::default(), owner: Process::current() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `buf` with a block of that length. `false` if it is missing or damaged.
    pub fn get(&self, object: &str, offset: u64, buf: &mut [u8]) -> bool {
        if !self.owner.is_current() {
            return false;
        }
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let place = ring.objects.get(object).and_then(|object| ring.blocks.get(&(*object, offset)).copied());
        let Some((at, len, crc)) = place else { return false };
        // Under the lock, so that no newer block overwrites the place.
        len as usize == buf.len() && self.file.read_exact_at(buf, at).is_ok() && crc32(&[buf]) == crc
    }

    /// Keeps a block. If the write fails, the block is not cached.
    pub fn put(&self, object: &str, offset: u64, block: &[u8]) {
        let len = block.len() as u64;
        let fits = len <= self.bytes_max && self.owner.is_current();
        let (Ok(short), true) = (u32::try_from(len), fits) else { return };
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let room = len.max(BLOCK_BYTES_MIN);
        let at = if ring.next + room <= self.bytes_max { ring.next } else { 0 };
        // Blocks that begin before this place may reach into it; they are the newest and end there.
        let replaced: Vec<u64> = ring.places.range(at..at + room).map(|(place, _)| *place).collect();
        for place in replaced {
            if let Some(key) = ring.places.remove(&place) {
                ring.blocks.remove(&key);
            }
        }
        ring.next = at + room;
        if self.file.write_all_at(block, at).is_err() {
            return;
        }
        let number = ring.objects.len() as u64;
        let object = *ring.objects.entry(object.to_owned()).or_insert(number);
        if let Some((old, ..)) = ring.blocks.insert((object, offset), (at, short, crc32(&[block]))) {
            ring.places.remove(&old);
        }
        ring.places.insert(at, (object, offset));
    }
}

impl Drop for DiskCache {
    fn drop(&mut self) {
        if self.owner.is_current() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cached block is returned intact or not at all, and the file respects its limit.
    #[test]
    fn blocks_come_back_as_they_were_or_not_and_the_file_keeps_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::create(dir.path(), 100_000).unwrap();
        let block = |i: u64| vec![i as u8; 1 + (i * 7919 % 5000) as usize];
        let mut hits = 0;
        for i in 0..3000u64 {
            cache.put(&format!("object {}", i % 3), i, &block(i));
            for seen in i.saturating_sub(60)..=i {
                let mut buf = vec![0xee; block(seen).len()];
                if cache.get(&format!("object {}", seen % 3), seen, &mut buf) {
                    assert_eq!(buf, block(seen), "block {seen} after {i}");
                    hits += 1;
                }
            }
            let mut other = [0; 1];
            assert!(!cache.get("object 9", i, &mut other));
        }
        assert!(hits > 3000 * 20, "{hits}");
        assert!(std::fs::metadata(cache.path()).unwrap().len() <= 100_000);
        cache.put("large", 0, &vec![0; 100_001]);
        assert!(!cache.get("large", 0, &mut vec![0; 100_001]));
    }

    #[test]
    fn i6_a_damaged_block_is_a_miss() {
        let dir = tempfile::tempdir().unwrap();
        let cache = DiskCache::create(dir.path(), 100_000).unwrap();
        cache.put("o", 0, &[7; 1000]);
        let mut buf = [0; 1000];
        assert!(cache.get("o", 0, &mut buf));
        File::options().write(true).open(cache.path()).unwrap().write_all_at(b"x", 500).unwrap();
        assert!(!cache.get("o", 0, &mut buf));
        std::fs::write(cache.path(), b"").unwrap();
        assert!(!cache.get("o", 0, &mut buf));
    }
}
