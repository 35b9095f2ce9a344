//! `sidebloom filter common`: the exact intersection of two huge files, in little memory.
//!
//! 1. Build a filter of the smaller file, as large as the memory allows.
//! 2. Read the larger file through it. The lines that pass (common lines and false positives) are candidates,
//!    partitioned by hash into 64 files on disk.
//! 3. Build a filter of these candidates, read the smaller file through it, and partition its candidates too.
//! 4. Equal lines are now in files with the same number. Load one file of each pair into a set and compare
//!    the other with it. Partition files that do not fit the memory again, by another hash.
//!
//! # Measured
//! Two files of 50 million URLs each (3.05 GB, 61 bytes a line, made by `examples/generate_urls.rs`), 5
//! million of them in both, `--memory 64MiB`, on two cores of an Intel Xeon (Sapphire Rapids):
//!
//! | time | most memory (`/usr/bin/time -v`) | candidates written to disk | found |
//! |---|---|---|---|
//! | 37 s | 61.9 MiB | 638 MiB | 5,000,000, checked against `sort` and `cmp` |
//!
//! With 10 million lines each, `--memory 64M` took 36.7 MiB; 300,000 lines against 10 million took 13.7 MiB
//! with the minimum, 16M. The first filter of the large measurement had 8.2 bits per line and passed 5.95
//! million lines of the larger file, 0.95 million of them false.

mod line_set;
mod parts;

use super::input::{InputLines, can_be_read_twice, estimated_lines};
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bytes};
use crate::print::LineFormat;
use crate::system;
use crate::workdir::WorkDir;
use line_set::{Full, LineSet};
use parts::{Dealer, PartFile};
use sidebloom::filter::{AtomicBloom, Verdict, sizing};
use sidebloom::{KeyHash, KeyHasher};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Print the lines that two files share, within a memory limit
///
/// Exact: the filters only select which lines go to disk for comparison. Prints each common line once, in no
/// particular order. Reads both files at most twice. The directory for temporary files (TMPDIR) holds the
/// common lines twice, plus false positives (--verbose prints the size). Exit codes: 0 if there are common
/// lines, 1 if there are none, 2 on error.
#[derive(clap::Args)]
pub struct Args {
    /// One file
    a: PathBuf,
    /// The other
    b: PathBuf,
    /// Lines end in NUL instead of LF, also those printed
    #[arg(short = '0', long)]
    null: bool,
    /// Memory limit in bytes, at least 16M; K, M and G stand for powers of 1024
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    memory: u64,
}

/// Memory of the program itself: code, stacks, input and output buffers.
const BASE_BYTES: u64 = 8 << 20;
const MIN_MEMORY: u64 = 16 << 20;
/// How often an oversized file is partitioned again, by 64 each time.
const DEPTH_MAX: usize = 8;
/// More bits per key do not pay: at 20, one absent line in 10,000 passes.
const BITS_PER_KEY_MAX: f64 = 20.0;

struct MemorySplit {
    buffers: usize,
    filter_or_set: usize,
}

/// A comparison of two files, and its working directory.
struct Comparison {
    dir: WorkDir,
    memory: MemorySplit,
    /// The filters' hash.
    filter_hash: KeyHasher,
    /// The partitioning hash of each depth, each with its own key.
    deal_hashes: Vec<KeyHasher>,
    dealt_bytes: Cell<u64>,
    /// Lines end in NUL instead of LF.
    null: bool,
}

/// Receives each common line.
type Emit<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if self.memory < MIN_MEMORY {
            return Err(Failure::message(format!("--memory {}: at least 16M is needed", self.memory)));
        }
        for path in [&self.a, &self.b] {
            if !can_be_read_twice(path)? {
                return Err(Failure::message(format!(
                    "{} can be read only once, but both files are read twice: save it to a file first",
                    path.display()
                )));
            }
        }
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let (small, large) =
            if size(&self.a) <= size(&self.b) { (&self.a, &self.b) } else { (&self.b, &self.a) };
        let free = usize::try_from(self.memory - BASE_BYTES).unwrap_or(usize::MAX);
        let memory = MemorySplit { buffers: free / 8, filter_or_set: free / 8 * 7 };
        let work = Comparison::new(memory, self.null)?;
        let format = LineFormat::new(cx.json, self.null);
        let (mut out, mut found) = (cx.out(), 0u64);
        work.run(small, large, &mut |line| {
            found += 1;
            format.write(&mut *out, line)
        })?;
        system::log_peak_memory();
        Ok(Outcome::found(found > 0))
    }
}

impl Comparison {
    fn new(memory: MemorySplit, null: bool) -> Result<Self, Failure> {
        Ok(Comparison {
            dir: WorkDir::temporary("common")?,
            memory,
            filter_hash: secret_hash()?,
            deal_hashes: (0..=DEPTH_MAX).map(|_| secret_hash()).collect::<Result<_, _>>()?,
            dealt_bytes: Cell::new(0),
            null,
        })
    }

    /// A set of lines as large as the memory allows.
    fn new_set(&self) -> Result<LineSet, Failure> {
        Ok(LineSet::new(self.memory.filter_or_set, secret_hash()?))
    }

    fn run(&self, small: &Path, large: &Path, emit: Emit) -> Result<(), Failure> {
        let filter = self.filter_of_file(small)?;
        let candidates = self.deal("large", "1/3 reading the larger file", large, filter.as_ref())?;
        drop(filter);
        let filter = self.filter_of_parts(&candidates)?;
        let again = self.deal("small", "2/3 reading the smaller file", small, filter.as_ref())?;
        drop(filter);
        tracing::info!("{} of candidates on disk", human::bytes(self.dealt_bytes.get() as f64));
        let mut set = self.new_set()?;
        for (i, (one, other)) in candidates.into_iter().zip(again).enumerate() {
            self.compare(one, other, &mut set, &i.to_string(), 1, emit)?;
        }
        Ok(())
    }

    fn open(&self, path: &Path, label: &str) -> Result<InputLines, Failure> {
        Ok(InputLines::open(path, label)?.ending_in_nul(self.null))
    }

    /// A filter of all lines, or `None` if it would be too small to be useful.
    fn filter_of_file(&self, path: &Path) -> Result<Option<AtomicBloom>, Failure> {
        let keys = estimated_lines(path, self.null)?;
        let Some(filter) = self.new_filter(keys)? else { return Ok(None) };
        self.open(path, "0/3 reading the smaller file")?.for_each(|line| {
            filter.insert(self.filter_hash.hash(line));
            Ok(())
        })?;
        Ok(Some(filter))
    }

    fn filter_of_parts(&self, parts: &[PartFile]) -> Result<Option<AtomicBloom>, Failure> {
        let Some(filter) = self.new_filter(parts.iter().map(|part| part.lines).sum())? else {
            return Ok(None);
        };
        for part in parts {
            part.read("reading candidates")?.for_each(|line| {
                filter.insert(self.filter_hash.hash(line));
                Ok(())
            })?;
        }
        Ok(Some(filter))
    }

    fn new_filter(&self, keys: u64) -> Result<Option<AtomicBloom>, Failure> {
        let keys = keys.max(1);
        let bits = (8.0 * self.memory.filter_or_set as f64 / keys as f64).min(BITS_PER_KEY_MAX);
        if bits < sizing::MIN_BITS_PER_KEY {
            tracing::info!("no filter: {} lines are too many for the memory", human::count(keys));
            return Ok(None);
        }
        tracing::info!("filter of {} lines, {bits:.1} bits each", human::count(keys));
        Ok(Some(AtomicBloom::new(keys, bits)?))
    }

    /// Partitions the lines that pass the filter.
    fn deal(
        &self,
        name: &str,
        label: &str,
        path: &Path,
        filter: Option<&AtomicBloom>,
    ) -> Result<Vec<PartFile>, Failure> {
        let mut dealer = self.dealer(name, 0, self.memory.buffers)?;
        let passes = |line: &[u8]| match filter {
            Some(filter) => filter.probe(self.filter_hash.hash(line)) == Verdict::Maybe,
            None => true,
        };
        self.open(path, label)?.for_each(|line| if passes(line) { dealer.deal(line) } else { Ok(()) })?;
        self.finish(dealer)
    }

    fn dealer(&self, name: &str, depth: usize, buffers: usize) -> Result<Dealer, Failure> {
        let too_deep = || Failure::message("cannot partition the lines any further: increase --memory");
        let hash = *self.deal_hashes.get(depth).ok_or_else(too_deep)?;
        Dealer::create(self.dir.path(), name, hash, buffers, self.null)
    }

    fn finish(&self, dealer: Dealer) -> Result<Vec<PartFile>, Failure> {
        let parts = dealer.finish()?;
        let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
        self.dealt_bytes.set(self.dealt_bytes.get() + bytes);
        Ok(parts)
    }

    /// Prints the lines that two partition files share, and removes the files.
    fn compare(
        &self,
        one: PartFile,
        other: PartFile,
        set: &mut LineSet,
        name: &str,
        depth: usize,
        emit: Emit,
    ) -> Result<(), Failure> {
        let (small, large) = if one.bytes <= other.bytes { (one, other) } else { (other, one) };
        if small.bytes > 0 {
            set.clear();
            if !load(&small, set)? {
                return self.compare_again(small, large, set, name, depth, emit);
            }
            large.read("3/3 comparing")?.for_each(|line| if set.take(line) { emit(line) } else { Ok(()) })?;
        }
        small.remove()?;
        large.remove()
    }

    /// Partitions both files by another hash and compares the parts.
    fn compare_again(
        &self,
        small: PartFile,
        large: PartFile,
        set: &mut LineSet,
        name: &str,
        depth: usize,
        emit: Emit,
    ) -> Result<(), Failure> {
        let deal = |part: PartFile, side: &str| {
            let buffers = self.memory.buffers / 2;
            let mut dealer = self.dealer(&format!("{name}.{side}"), depth, buffers)?;
            part.read("3/3 dividing")?.for_each(|line| dealer.deal(line))?;
            part.remove()?;
            self.finish(dealer)
        };
        let parts = deal(small, "small")?.into_iter().zip(deal(large, "large")?);
        for (i, (one, other)) in parts.enumerate() {
            self.compare(one, other, set, &format!("{name}.{i}"), depth + 1, emit)?;
        }
        Ok(())
    }
}

/// A hash with a random key, so that nobody can choose colliding lines.
fn secret_hash() -> Result<KeyHasher, Failure> {
    Ok(KeyHasher::random(KeyHash::SipHash13)?)
}

/// Whether all lines fitted.
fn load(part: &PartFile, set: &mut LineSet) -> Result<bool, Failure> {
    let mut lines = part.read("3/3 loading")?;
    while let Some(line) = lines.next()? {
        if set.insert(line) == Err(Full) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Lines that overflow the memory again and again are still compared exactly.
    #[test]
    fn lines_that_overflow_the_memory_are_still_compared_exactly() {
        [false, true].into_iter().for_each(compare_in_little_memory);
    }

    fn compare_in_little_memory(null: bool) {
        let inputs = tempfile::tempdir().unwrap();
        let ends = if null { "\nline\0" } else { "\n" };
        let file = |name: &str, numbers: std::ops::Range<u32>| {
            let path = inputs.path().join(name);
            let text: String = numbers.map(|i| format!("line {}{ends}", i % 20_000)).collect();
            std::fs::write(&path, text).unwrap();
            path
        };
        let (small, large) = (file("a", 0..15_000), file("b", 10_000..50_000));
        // Room for some thirty lines: no filter, and two divisions of 64 for the 15,000.
        let work = Comparison::new(MemorySplit { buffers: 64 << 6, filter_or_set: 900 }, null).unwrap();
        let mut found = Vec::new();
        work.run(&small, &large, &mut |line| {
            found.push(line.to_vec());
            Ok(())
        })
        .unwrap();
        let distinct: BTreeSet<_> = found.iter().cloned().collect();
        assert_eq!((found.len(), distinct.len()), (15_000, 15_000), "each common line, once");
        assert_eq!(std::fs::read_dir(work.dir.path()).unwrap().count(), 0, "no file is left");
    }

    /// Lines of 32 bytes that XXH3 with `seed` gives the same hash: the first word equals the secret that it
    /// is xored with, so its product with the second word, which is free, is zero.
    fn colliding_lines(seed: u64, count: u64) -> impl Iterator<Item = Vec<u8>> {
        const SECRET: u64 = 0xbe4b_a423_396c_feb8; // The first 8 bytes of XXH3's own.
        let first = SECRET.wrapping_add(seed).to_le_bytes();
        (0..count).map(move |i| [&first[..], format!("{i:08}").as_bytes(), &[b'x'; 16]].concat())
    }

    #[test]
    fn lines_chosen_to_collide_under_a_known_seed_are_found_as_fast_as_others() {
        const LINES: u64 = 2000;
        let probes = |mut set: LineSet| {
            colliding_lines(0x5e7, LINES).for_each(|line| assert_eq!(set.insert(&line), Ok(())));
            colliding_lines(0x5e7, LINES).map(|line| set.probes(&line)).sum::<u64>()
        };
        let bytes = 1 << 20;
        assert_eq!(
            probes(LineSet::new(bytes, 0x5e7.into())),
            LINES * (LINES + 1) / 2,
            "the lines do collide"
        );
        let work = Comparison::new(MemorySplit { buffers: 64 << 6, filter_or_set: bytes }, false).unwrap();
        let found = probes(work.new_set().unwrap());
        assert!(found < 2 * LINES, "{found} slots looked at for {LINES} lines");
        for hash in [&work.filter_hash].into_iter().chain(&work.deal_hashes) {
            let hashes: BTreeSet<u64> = colliding_lines(0xdea1, LINES).map(|line| hash.hash(&line)).collect();
            assert_eq!(hashes.len() as u64, LINES);
        }
    }
}
