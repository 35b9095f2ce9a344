//! Compares lookups of missing keys with a bare loop over the same fences and filter lines:
//!
//! ```sh
//! cargo run --release -p micro --bin bare -- [KEYS] [pinned]  # 10,000,000 keys by default; about a minute
//! ```
//!
//! The bare loop hashes a key, searches the fences of each run, prefetches the lines and probes them. It has
//! no memtable, snapshot, counters or validation of files. Both look up the same keys, in turns of some
//! thousand, so that both see the same machine.
//!
//! The loop runs over two copies of the lines: on pages of 4 KiB, as the store's maps are, and on huge pages
//! if the kernel has them, as those of a store that pins its filters (`pinned`).

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::filter::{KeyHasher, LINE_BYTES, Line, Lines, ProbeHash, Prober, Verdict};
use sidebloom::internal::bench::{SegmentFilter, prefix8};
use sidebloom::{Batch, Db, Options, Residency, Result};
use std::hint::black_box;
use std::time::{Duration, Instant};

const VALUE_BYTES: usize = 100;
const BATCH: usize = 64;
/// Keys in a turn, and turns of each.
const TURN: usize = 4096;
const TURNS: usize = 201;

/// A store's sorted runs as plain arrays.
struct Bare<'l> {
    hasher: KeyHasher,
    runs: Vec<BareRun<'l>>,
}

struct BareRun<'l> {
    /// The fences of each segment's smallest and largest key.
    fences: Vec<[u64; 2]>,
    filters: Vec<(Prober, &'l [Line])>,
}

/// All keys start with `user`.
fn fence(key: &[u8]) -> u64 {
    prefix8(&key[4..])
}

/// All lines in one piece of memory, which is large enough for huge pages.
fn on_huge_pages(filters: &[SegmentFilter]) -> Lines {
    let mut lines = Lines::zeroed(filters.iter().map(|filter| filter.lines.len()).sum()).expect("memory");
    let mut left = &mut lines[..];
    for filter in filters {
        let part = left.split_off_mut(..filter.lines.len()).expect("a part for each filter");
        part.copy_from_slice(&filter.lines);
    }
    lines
}

impl<'l> Bare<'l> {
    /// The runs with these filters and this copy of their lines, in the same order.
    fn new(
        hasher: KeyHasher,
        filters: &[SegmentFilter],
        mut lines: impl Iterator<Item = &'l [Line]>,
    ) -> Self {
        let mut runs: Vec<(usize, BareRun<'l>)> = Vec::new();
        for SegmentFilter { level, keys, kind, .. } in filters {
            if *level == 0 || runs.last().is_none_or(|(last, _)| last != level) {
                runs.push((*level, BareRun { fences: Vec::new(), filters: Vec::new() }));
            }
            if let Some((_, run)) = runs.last_mut() {
                run.fences.push([fence(&keys[0]), fence(&keys[1])]);
                run.filters.push((Prober::new(*kind), lines.next().expect("lines")));
            }
        }
        Bare { hasher, runs: runs.into_iter().map(|(_, run)| run).collect() }
    }

    /// Calls `meet` with the filter of each segment that may have the key, until it returns true.
    #[inline(always)]
    fn any(&self, key: &[u8], mut meet: impl FnMut(&Prober, &[Line]) -> bool) -> bool {
        let fence = fence(key);
        self.runs.iter().any(|run| {
            let at = run.fences.partition_point(|[_, last]| *last < fence);
            let within = run.fences.get(at).is_some_and(|[first, _]| *first <= fence);
            within && meet(&run.filters[at].0, run.filters[at].1)
        })
    }

    #[inline(always)]
    fn prefetch(&self, key: &[u8], hash: u64) {
        self.any(key, |prober, lines| {
            prober.prefetch(lines, hash);
            false
        });
    }

    #[inline(always)]
    fn probe(&self, key: &[u8], hash: &ProbeHash) -> bool {
        self.any(key, |prober, lines| {
            !prober.denies(lines, hash) && prober.probe(lines, hash.hash()) == Verdict::Maybe
        })
    }

    fn may_contain(&self, key: &[u8]) -> bool {
        let hash = ProbeHash::new(self.hasher.hash(key));
        self.prefetch(key, hash.hash());
        self.probe(key, &hash)
    }

    fn may_contain_many(&self, keys: &[Vec<u8>]) -> usize {
        let mut maybes = 0;
        for keys in keys.chunks(16) {
            let hashes: Vec<ProbeHash> =
                keys.iter().map(|key| ProbeHash::new(self.hasher.hash(key))).collect();
            keys.iter().zip(&hashes).for_each(|(key, hash)| self.prefetch(key, hash.hash()));
            maybes += keys.iter().zip(&hashes).filter(|(key, hash)| self.probe(key, hash)).count();
        }
        maybes
    }
}

/// Present keys end in `+`, missing keys in `-`, of the same length and between present keys.
fn key(index: u64, present: bool) -> Vec<u8> {
    let spread = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    format!("user{spread:019}{}", if present { '+' } else { '-' }).into_bytes()
}

fn load(db: &Db, keys: u64) -> Result<()> {
    let mut value = [7; VALUE_BYTES];
    for first in (0..keys).step_by(100) {
        let mut batch = Batch::new();
        for index in first..keys.min(first + 100) {
            value[..8].copy_from_slice(&index.wrapping_mul(0x9e37_79b9).to_le_bytes());
            batch.put(key(index, true), value);
        }
        db.write(batch)?;
    }
    db.wait_for_compaction()?;
    db.warm()
}

/// A name, and a function that looks up some keys and returns how many may be present.
type Way<'a> = (&'static str, &'a dyn Fn(&[Vec<u8>]) -> usize);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let keys = arguments.next().map_or(10_000_000, |keys| keys.parse().expect("a number of keys"));
    let residency = match arguments.next().as_deref() {
        None => Residency::Mapped,
        Some("pinned") => Residency::Pinned,
        Some(_) => panic!("usage: bare [KEYS] [pinned]"),
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Options::new().residency(residency).open(dir.path()).expect("a store");
    let started = Instant::now();
    load(&db, keys).expect("a load");
    for level in db.stats().levels {
        println!("level {}: {} runs, {} keys, {:?}", level.level, level.runs, level.keys, level.filter_kinds);
    }
    println!("{keys} keys loaded in {:.1} s", started.elapsed().as_secs_f64());
    let (filters, hasher) = db.segment_filters();
    let mut left = &on_huge_pages(&filters)[..];
    let small = Bare::new(hasher, &filters, filters.iter().map(|filter| &filter.lines[..]));
    let parts = filters.iter().map(|filter| left.split_off(..filter.lines.len()).expect("a part"));
    let huge = Bare::new(hasher, &filters, parts);
    println!("{} KiB of lines", filters.iter().map(|f| f.lines.len() * LINE_BYTES).sum::<usize>() >> 10);
    let one_by_one = |bare: &Bare<'_>, keys: &[Vec<u8>]| keys.iter().filter(|k| bare.may_contain(k)).count();
    let in_batches =
        |bare: &Bare<'_>, keys: &[Vec<u8>]| keys.chunks(BATCH).map(|keys| bare.may_contain_many(keys)).sum();
    let ways: [Way<'_>; 8] = [
        ("bare loop, pages of 4 KiB", &|keys| one_by_one(&small, keys)),
        ("bare loop, huge pages", &|keys| one_by_one(&huge, keys)),
        ("get", &|keys| keys.iter().filter(|key| db.get(key).expect("an answer").is_some()).count()),
        ("may_contain", &|keys| keys.iter().filter(|key| db.may_contain(key) == Verdict::Maybe).count()),
        ("bare loop, 64 at once, pages of 4 KiB", &|keys| in_batches(&small, keys)),
        ("bare loop, 64 at once, huge pages", &|keys| in_batches(&huge, keys)),
        ("multi_get of 64", &|keys| {
            let found = |keys| db.multi_get(keys).expect("answers").iter().flatten().count();
            keys.chunks(BATCH).map(found).sum()
        }),
        ("may_contain_many of 64", &|keys| {
            let maybe = |keys| db.may_contain_many(keys).iter().filter(|v| **v == Verdict::Maybe).count();
            keys.chunks(BATCH).map(maybe).sum()
        }),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    let mut maybes = vec![0; ways.len()];
    for turn in 0..TURNS {
        for (number, (_, way)) in ways.iter().enumerate() {
            // Each turn has its own keys.
            let first = (turn * ways.len() + number) * TURN;
            let asked: Vec<Vec<u8>> = (first..first + TURN)
                .map(|i| key(i as u64 * 7919 % keys + keys * (i as u64 & 1), false))
                .collect();
            let started = Instant::now();
            maybes[number] += black_box(way(&asked));
            times[number].push(started.elapsed());
        }
    }
    println!("   time  x 4 KiB  x huge");
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times).as_secs_f64()).collect();
    for (number, (name, _)) in ways.iter().enumerate() {
        let (median, first) = (medians[number], number / 4 * 4);
        println!(
            "{:6.1} ns  {:.2}     {:.2}   {name}, {} of {} maybe or found",
            median * 1e9 / TURN as f64,
            median / medians[first],
            median / medians[first + 1],
            maybes[number],
            TURN * TURNS,
        );
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
