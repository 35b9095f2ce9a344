//! Hashes in ascending order, in little memory: dealt to parts by their highest bits, each part sorted when it is wanted.
//!
//! A part is a buffer in memory and the blocks of one file that it has filled before. What comes back from the file is compared with the
//! sum of the hashes that went there.

use crate::context::Failure;
use crate::progress;
use crate::workdir::WorkDir;
use sidebloom::filter::{EachPiece, SortHashes};
use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::rc::Rc;

const HASH_BYTES: usize = size_of::<u64>();
/// Of a hash's highest bits.
const PARTS: usize = 256;
const BLOCK_BYTES: usize = 64 << 10;

/// Where the files are, once there are some.
#[derive(Default)]
struct Place {
    dir: OnceCell<WorkDir>,
    files: Cell<u32>,
}

impl Place {
    fn create(&self) -> Result<(File, PathBuf), Failure> {
        let dir = match self.dir.get() {
            Some(dir) => dir,
            None => {
                let fresh = WorkDir::temporary("build")?;
                self.dir.get_or_init(|| fresh)
            }
        };
        let number = self.files.replace(self.files.get() + 1);
        let path = dir.path().join(format!("hashes.{number}"));
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        Ok((file.map_err(|e| Failure::file("create", &path, e))?, path))
    }
}

/// 16 MiB of buffers, and a 256th of the hashes while they are sorted.
pub struct Sorter {
    place: Rc<Place>,
    /// Of a full buffer, and of a block of the file.
    block_bytes: usize,
    parts: Vec<Part>,
    /// Made with the first block.
    file: Option<(File, PathBuf)>,
    blocks: u64,
}

#[derive(Default, Clone)]
struct Part {
    buffer: Vec<u8>,
    /// Numbers of its blocks in the file.
    blocks: Vec<u64>,
    /// Of the hashes in the file.
    sum: u64,
}

impl Sorter {
    /// An empty one, whose file is in the directory for temporary files.
    pub fn new() -> Self {
        Sorter::at(Rc::default(), BLOCK_BYTES)
    }

    fn at(place: Rc<Place>, block_bytes: usize) -> Self {
        Sorter { place, block_bytes, parts: vec![Part::default(); PARTS], file: None, blocks: 0 }
    }

    /// Writes a full buffer to the file.
    #[cold]
    fn spill(&mut self, part: usize) -> Result<(), Failure> {
        let (file, path) = match &mut self.file {
            Some(open) => open,
            none => none.insert(self.place.create()?),
        };
        let Some(part) = self.parts.get_mut(part) else { return Ok(()) };
        file.write_all(&part.buffer).map_err(|e| Failure::file("write", path, e))?;
        part.sum = hashes_of(&part.buffer).fold(part.sum, u64::wrapping_add);
        part.buffer.clear();
        part.blocks.push(self.blocks);
        self.blocks += 1;
        Ok(())
    }

    /// Makes `sorted` all hashes of a part, each once, in ascending order.
    fn load(&mut self, part: usize, sorted: &mut Vec<u64>) -> Result<(), Failure> {
        sorted.clear();
        let Some(part) = self.parts.get(part) else { return Ok(()) };
        if let Some((file, path)) = &mut self.file {
            let mut block = vec![0; self.block_bytes];
            for number in &part.blocks {
                let read = file.seek(SeekFrom::Start(number * self.block_bytes as u64));
                read.and_then(|_| file.read_exact(&mut block)).map_err(|e| Failure::file("read", path, e))?;
                sorted.extend(hashes_of(&block));
            }
            if sorted.iter().copied().fold(0, u64::wrapping_add) != part.sum {
                return Err(Failure::message(format!(
                    "{} does not read back as it was written: check the disk and build again",
                    path.display()
                )));
            }
        }
        sorted.extend(hashes_of(&part.buffer));
        sorted.sort_unstable();
        sorted.dedup();
        Ok(())
    }
}

impl SortHashes for Sorter {
    type Error = Failure;

    fn another(&self) -> Result<Self, Failure> {
        Ok(Sorter::at(Rc::clone(&self.place), self.block_bytes))
    }

    #[inline]
    fn push(&mut self, hash: u64) -> Result<(), Failure> {
        let which = (hash >> (u64::BITS - PARTS.ilog2())) as usize;
        let Some(part) = self.parts.get_mut(which) else { return Ok(()) };
        part.buffer.extend_from_slice(&hash.to_ne_bytes());
        if part.buffer.len() < self.block_bytes { Ok(()) } else { self.spill(which) }
    }

    fn distinct(&mut self) -> Result<u64, Failure> {
        let mut distinct = 0;
        self.in_order(&mut |piece| {
            distinct += piece.len() as u64;
            Ok(())
        })?;
        Ok(distinct)
    }

    fn in_order(&mut self, each: EachPiece<'_, Failure>) -> Result<(), Failure> {
        let (bar, mut sorted) = (progress::bar("building", PARTS as u64), Vec::new());
        for part in 0..PARTS {
            self.load(part, &mut sorted)?;
            each(&sorted)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }
}

fn hashes_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks::<HASH_BYTES>().0.iter().map(|hash| u64::from_ne_bytes(*hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidebloom::KeyHasher;
    use sidebloom::filter::{FilterSpec, LineFilter, Width};

    const KEYS: u64 = 900_000;

    /// Enough for every part to fill small blocks, on the second level too; a third comes twice.
    fn hashes() -> impl Iterator<Item = u64> {
        (0..KEYS / 3 * 4).map(|i| KeyHasher::from(3).hash(&(i % KEYS).to_le_bytes()))
    }

    #[test]
    fn what_is_built_from_the_disk_is_what_is_built_in_memory() {
        let width = Width::Eight;
        let mut sorter = Sorter::at(Rc::default(), 1 << 10);
        hashes().for_each(|hash| sorter.push(hash).unwrap());
        assert!(sorter.parts.iter().all(|part| part.blocks.len() > 3));
        let place = Rc::clone(&sorter.place);
        let from_disk = LineFilter::from_sorter(width, sorter, 3).unwrap_or_else(|e| panic!("{e}"));
        let all: Vec<u64> = hashes().collect();
        let from_memory = LineFilter::from_hashes(FilterSpec::Parity { width }, &all, 3).unwrap();
        assert!(from_disk.built() == from_memory.built());
        assert_eq!(from_disk.keys(), KEYS);
        assert_eq!(place.files.get(), 2, "one file of all hashes, one of those that the first level bumps");
        let dir = place.dir.get().unwrap().path().to_path_buf();
        drop(place);
        assert!(!dir.exists());
    }

    #[test]
    fn a_block_that_has_changed_on_disk_is_named() {
        let mut sorter = Sorter::new();
        (0..8192).for_each(|i| sorter.push(i).unwrap());
        let (file, path) = sorter.file.as_mut().unwrap();
        file.seek(SeekFrom::Start(100)).unwrap();
        file.write_all(&[0xff]).unwrap();
        let name = path.display().to_string();
        let error = sorter.distinct().unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("does not read back"), "{error}");
    }
}
