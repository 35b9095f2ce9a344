//! Sorts the hashes of lines for a parity filter, in little memory.

use crate::context::Failure;
use crate::progress;
use crate::workdir::WorkDir;
use sidebloom::filter::{EachPiece, SortHashes};
use sidebloom::fs::RealFs;
use sidebloom::internal::ExternalSorter;
use std::cell::{Cell, OnceCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Above 2 million hashes, all are written to disk.
const MEMORY_BYTES: usize = 16 << 20;
/// Hashes per batch for the filter.
const PIECE_HASHES: usize = 64 << 10;

/// The temporary directory of all levels of a filter, created on first use.
struct SortDir {
    path: PathBuf,
    created: OnceCell<WorkDir>,
    files: Cell<u32>,
}

impl SortDir {
    fn create(&self) -> Result<(), Failure> {
        if self.created.get().is_none() {
            let _ = self.created.set(WorkDir::create_temporary(self.path.clone())?);
        }
        Ok(())
    }
}

/// Sorts hashes in [`MEMORY_BYTES`] of memory, and in the directory for temporary files beyond that.
pub struct LineHashSorter {
    dir: Rc<SortDir>,
    memory_bytes: usize,
    sorter: ExternalSorter<u64>,
}

impl LineHashSorter {
    /// An empty sorter.
    pub fn new() -> Self {
        Self::with_memory(MEMORY_BYTES)
    }

    fn with_memory(memory_bytes: usize) -> Self {
        let path = WorkDir::temporary_path("build");
        LineHashSorter::at(
            Rc::new(SortDir { path, created: OnceCell::new(), files: Cell::new(0) }),
            memory_bytes,
        )
    }

    fn at(dir: Rc<SortDir>, memory_bytes: usize) -> Self {
        let number = dir.files.replace(dir.files.get() + 1);
        let path = dir.path.join(format!("hashes.{number}"));
        LineHashSorter {
            dir,
            memory_bytes,
            sorter: ExternalSorter::new(Arc::new(RealFs), path, memory_bytes),
        }
    }
}

impl SortHashes for LineHashSorter {
    type Error = Failure;

    fn another(&self) -> Result<Self, Failure> {
        Ok(LineHashSorter::at(Rc::clone(&self.dir), self.memory_bytes))
    }

    #[inline]
    fn push(&mut self, hash: u64) -> Result<(), Failure> {
        if self.sorter.is_about_to_spill() {
            self.dir.create()?;
        }
        Ok(self.sorter.push(hash)?)
    }

    fn distinct(&mut self) -> Result<u64, Failure> {
        Ok(self.sorter.counted()?.try_fold(0, |distinct, counted| counted.map(|_| distinct + 1))?)
    }

    fn in_order(&mut self, each: EachPiece<'_, Failure>) -> Result<(), Failure> {
        let bar = progress::bar("building", self.sorter.len());
        let (mut piece, mut pushed) = (Vec::with_capacity(PIECE_HASHES), 0);
        for counted in self.sorter.counted()? {
            let (hash, count) = counted?;
            piece.push(hash);
            pushed += count;
            if piece.len() == PIECE_HASHES {
                each(&piece)?;
                piece.clear();
                bar.set_position(pushed);
            }
        }
        each(&piece)?;
        bar.finish_and_clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidebloom::KeyHasher;
    use sidebloom::filter::{FilterSpec, LineFilter, Width};

    const KEYS: u64 = 900_000;

    /// Enough for many runs on disk, on the second level too; a third are duplicates.
    fn hashes() -> impl Iterator<Item = u64> {
        (0..KEYS / 3 * 4).map(|i| KeyHasher::from(3).hash(&(i % KEYS).to_le_bytes()))
    }

    #[test]
    fn what_is_built_from_the_disk_is_what_is_built_in_memory() {
        let width = Width::Eight;
        let mut sorter = LineHashSorter::with_memory(64 << 10);
        assert!(!sorter.dir.path.exists(), "no file yet");
        hashes().for_each(|hash| sorter.push(hash).unwrap());
        let dir = Rc::clone(&sorter.dir);
        let path = dir.path.clone();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "the hashes are on disk");
        let from_disk = LineFilter::from_sorter(width, &mut sorter, 3).unwrap_or_else(|e| panic!("{e}"));
        let all: Vec<u64> = hashes().collect();
        let from_memory = LineFilter::from_hashes(FilterSpec::Parity { width }, &all, 3).unwrap();
        assert!(from_disk.built() == from_memory.built());
        assert_eq!(from_disk.keys(), KEYS);
        assert!(dir.files.get() > 1, "a sorter for the hashes that the first level bumps");
        drop((dir, sorter));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_has_changed_on_disk_is_named() {
        let mut sorter = LineHashSorter::with_memory(8 << 10);
        (0..8192).for_each(|i| sorter.push(i).unwrap());
        let path = sorter.dir.path.join("hashes.0");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 0xff;
        std::fs::write(&path, bytes).unwrap();
        let error = sorter.distinct().unwrap_err().to_string();
        assert!(error.contains(path.to_str().unwrap()) && error.contains("do not read back"), "{error}");
    }
}
