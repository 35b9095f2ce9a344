//! Sorting key hashes that may not fit memory: runs sorted in memory, spilled when they are long, merged at the end.
//!
//! A run's file: the hashes, big-endian, then the 64-bit digest of them. It lives as long as the sort.

use super::format::HashWidth;
use super::hashed::Hashed;
use crate::error::{Error, Result};
use crate::fs::{AppendFile, Fs, ReadFile};
use crate::hash::Digest;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Ending of a run's file.
pub(super) const SUFFIX: &str = ".run";
/// Hashes in memory before a run is spilled.
const RUN_BYTES: usize = 256 << 20;
/// Read or written of a run at once.
const BUFFER_BYTES: usize = 1 << 20;
const DIGEST_BYTES: u64 = 8;

/// Call order: `push* finish`.
pub(super) struct Sorter {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    width: HashWidth,
    run_bytes: usize,
    hashes: Vec<Hashed>,
    spilled: Vec<Spilled>,
}

/// A run on disk; removed when dropped.
struct Spilled {
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl Drop for Spilled {
    fn drop(&mut self) {
        if let Err(error) = self.fs.remove(&self.path) {
            tracing::warn!(%error, "a file of a build stays until the guard is opened");
        }
    }
}

impl Sorter {
    /// Spills into `dir`, which must exist.
    pub fn new(fs: Arc<dyn Fs>, dir: &Path, width: HashWidth) -> Self {
        Self::with_runs_of(RUN_BYTES, fs, dir, width)
    }

    fn with_runs_of(run_bytes: usize, fs: Arc<dyn Fs>, dir: &Path, width: HashWidth) -> Self {
        Sorter { fs, dir: dir.to_path_buf(), width, run_bytes, hashes: Vec::new(), spilled: Vec::new() }
    }

    #[inline]
    pub fn push(&mut self, hash: Hashed) -> Result<()> {
        self.hashes.push(hash);
        if self.hashes.len() * size_of::<Hashed>() >= self.run_bytes {
            self.spill()?;
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.hashes.sort_unstable();
        let path = self.dir.join(format!("{:06}{SUFFIX}", self.spilled.len()));
        let mut file = self.fs.create(&path)?;
        self.spilled.push(Spilled { fs: Arc::clone(&self.fs), path });
        write_run(&mut *file, self.hashes.drain(..).map(|hash| hash.to_bytes(self.width)))
    }

    /// Every hash once, ascending, with how often it was pushed.
    pub fn finish(mut self) -> Result<Counted<impl Iterator<Item = Result<Hashed>>>> {
        self.hashes.sort_unstable();
        let mut runs = vec![Run::Memory(std::mem::take(&mut self.hashes).into_iter())];
        for spilled in self.spilled {
            runs.push(Run::Disk(Box::new(DiskRun::open(spilled, self.width)?)));
        }
        Ok(Counted { sorted: Merge::new(runs)?.peekable() })
    }
}

fn write_run(file: &mut dyn AppendFile, hashes: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<()> {
    let mut digest = Digest::default();
    let mut buffer = Vec::with_capacity(BUFFER_BYTES + 16);
    for hash in hashes {
        buffer.extend_from_slice(hash.as_ref());
        if buffer.len() >= BUFFER_BYTES {
            digest.update(&buffer);
            file.append(&buffer)?;
            buffer.clear();
        }
    }
    digest.update(&buffer);
    buffer.extend_from_slice(&digest.finish().to_le_bytes());
    file.append(&buffer)
}

/// Folds equal neighbours into a count.
pub(super) struct Counted<I: Iterator<Item = Result<Hashed>>> {
    sorted: std::iter::Peekable<I>,
}

impl<I: Iterator<Item = Result<Hashed>>> Iterator for Counted<I> {
    type Item = Result<(Hashed, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = match self.sorted.next()? {
            Ok(first) => first,
            Err(error) => return Some(Err(error)),
        };
        let mut count = 1;
        while self.sorted.next_if(|next| next.as_ref().is_ok_and(|next| *next == first)).is_some() {
            count += 1;
        }
        Some(Ok((first, count)))
    }
}

enum Run {
    Memory(std::vec::IntoIter<Hashed>),
    Disk(Box<DiskRun>),
}

impl Run {
    fn next(&mut self) -> Result<Option<Hashed>> {
        match self {
            Run::Memory(hashes) => Ok(hashes.next()),
            Run::Disk(run) => run.next(),
        }
    }
}

struct DiskRun {
    /// Removes the file at the end.
    spilled: Spilled,
    file: Arc<dyn ReadFile>,
    width: HashWidth,
    /// Of the hashes, without the digest.
    end: u64,
    offset: u64,
    buffer: Vec<u8>,
    /// Consumed of the buffer.
    at: usize,
    digest: Digest,
}

impl DiskRun {
    fn open(spilled: Spilled, width: HashWidth) -> Result<Self> {
        let file = spilled.fs.open(&spilled.path)?;
        let end = file.len()?.saturating_sub(DIGEST_BYTES);
        let (buffer, digest) = (Vec::new(), Digest::default());
        Ok(DiskRun { spilled, file, width, end, offset: 0, buffer, at: 0, digest })
    }

    fn next(&mut self) -> Result<Option<Hashed>> {
        if self.at == self.buffer.len() && !self.refill()? {
            return Ok(None);
        }
        let bytes = self.buffer.get(self.at..self.at + self.width.bytes()).unwrap_or_default();
        self.at += self.width.bytes();
        Hashed::from_bytes(bytes, self.width).map(Some).ok_or_else(|| self.damaged())
    }

    fn refill(&mut self) -> Result<bool> {
        let n = (self.end - self.offset).min(BUFFER_BYTES as u64) as usize;
        self.buffer.resize(n, 0);
        self.at = 0;
        if n > 0 {
            self.file.read_exact_at(&mut self.buffer, self.offset)?;
            self.digest.update(&self.buffer);
            self.offset += n as u64;
            return Ok(true);
        }
        let mut stored = [0; DIGEST_BYTES as usize];
        self.file.read_exact_at(&mut stored, self.end)?;
        if u64::from_le_bytes(stored) != self.digest.finish() {
            return Err(self.damaged());
        }
        Ok(false)
    }

    fn damaged(&self) -> Error {
        Error::corruption(&self.spilled.path, 0, "the sorted run does not read back as written; build again")
    }
}

/// A k-way merge by a heap of each run's next hash.
struct Merge {
    runs: Vec<Run>,
    next: BinaryHeap<Reverse<(Hashed, usize)>>,
}

impl Merge {
    fn new(mut runs: Vec<Run>) -> Result<Self> {
        let mut next = BinaryHeap::with_capacity(runs.len());
        for (i, run) in runs.iter_mut().enumerate() {
            next.extend(run.next()?.map(|hash| Reverse((hash, i))));
        }
        Ok(Merge { runs, next })
    }
}

impl Iterator for Merge {
    type Item = Result<Hashed>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((hash, i)) = self.next.pop()?;
        match self.runs.get_mut(i)?.next() {
            Ok(following) => self.next.extend(following.map(|hash| Reverse((hash, i)))),
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::RealFs;
    use crate::hash::KeyHasher;
    use std::collections::BTreeMap;

    const HASHER: KeyHasher = KeyHasher::siphash13([5, 6]);

    #[test]
    fn hashes_come_out_sorted_and_counted_whether_they_fit_memory_or_not() {
        for width in [HashWidth::Bits64, HashWidth::Bits128] {
            for (keys, run_bytes) in [(0, 1 << 20), (1, 16), (10_000, 1 << 20), (10_000, 4096), (10_000, 16)]
            {
                let dir = tempfile::tempdir().unwrap();
                let mut sorter = Sorter::with_runs_of(run_bytes, Arc::new(RealFs), dir.path(), width);
                let mut expected = BTreeMap::new();
                for i in 0..keys {
                    let hash = Hashed::of(&(i % 700 * (i % 3)).to_string().into_bytes(), &HASHER, width);
                    *expected.entry(hash).or_insert(0) += 1;
                    sorter.push(hash).unwrap();
                    if keys > 1000 && i > 100 && run_bytes == 16 {
                        break; // A file for each hash; a hundred will do.
                    }
                }
                let found: Vec<_> = sorter.finish().unwrap().map(Result::unwrap).collect();
                assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{keys} {run_bytes}");
                assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "runs are removed");
            }
        }
    }

    #[test]
    fn a_damaged_run_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::with_runs_of(1600, Arc::new(RealFs), dir.path(), HashWidth::Bits64);
        (0..100u8).for_each(|i| sorter.push(Hashed::of(&[i], &HASHER, HashWidth::Bits64)).unwrap());
        let path = dir.path().join("000000.run");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[80] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let error = sorter.finish().unwrap().find_map(Result::err).unwrap().to_string();
        assert!(error.contains("000000.run"), "{error}");
    }
}
