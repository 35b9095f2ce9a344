//! Compares lookups of missing keys with a bare loop over the same fences and filter lines:
//!
//! ```sh
//! cargo run --release -p micro --bin bare -- [KEYS]      # 10,000,000 keys by default; takes about a minute
//! ```
//!
//! The bare loop hashes a key, searches the fences of each run, prefetches the lines and probes them. It has
//! no memtable, snapshot, counters or validation of files. Both look up the same keys, in turns of some
//! thousand, so that both see the same machine.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::filter::{KeyHasher, Lines, ProbeHash, Prober, Verdict};
use sidebloom::internal::bench::{SegmentFilter, prefix8};
use sidebloom::{Batch, Db, Options, Result};
use std::hint::black_box;
use std::time::{Duration, Instant};

const VALUE_BYTES: usize = 100;
const BATCH: usize = 64;
/// Keys in a turn, and turns of each.
const TURN: usize = 4096;
const TURNS: usize = 201;

/// A store's sorted runs as plain arrays.
struct Bare {
    hasher: KeyHasher,
    runs: Vec<BareRun>,
}

struct BareRun {
    /// The fences of each segment's smallest and largest key.
    fences: Vec<[u64; 2]>,
    filters: Vec<(Prober, Lines)>,
}

/// All keys start with `user`.
fn fence(key: &[u8]) -> u64 {
    prefix8(&key[4..])
}

impl Bare {
    fn of(db: &Db) -> Self {
        let (filters, hasher) = db.segment_filters();
        let mut runs: Vec<(usize, BareRun)> = Vec::new();
        for SegmentFilter { level, keys, kind, lines } in filters {
            if level == 0 || runs.last().is_none_or(|(last, _)| *last != level) {
                runs.push((level, BareRun { fences: Vec::new(), filters: Vec::new() }));
            }
            if let Some((_, run)) = runs.last_mut() {
                run.fences.push(keys.map(|key| fence(&key)));
                run.filters.push((Prober::new(kind), lines));
            }
        }
        Bare { hasher, runs: runs.into_iter().map(|(_, run)| run).collect() }
    }

    /// Calls `meet` with the filter of each segment that may have the key, until it returns true.
    #[inline(always)]
    fn any(&self, key: &[u8], mut meet: impl FnMut(&Prober, &Lines) -> bool) -> bool {
        let fence = fence(key);
        self.runs.iter().any(|run| {
            let at = run.fences.partition_point(|[_, last]| *last < fence);
            let within = run.fences.get(at).is_some_and(|[first, _]| *first <= fence);
            within && meet(&run.filters[at].0, &run.filters[at].1)
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
    let keys = std::env::args().nth(1).map_or(10_000_000, |keys| keys.parse().expect("a number of keys"));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Options::new().open(dir.path()).expect("a store");
    let started = Instant::now();
    load(&db, keys).expect("a load");
    for level in db.stats().levels {
        println!("level {}: {} runs, {} keys, {:?}", level.level, level.runs, level.keys, level.filter_kinds);
    }
    println!("{keys} keys loaded in {:.1} s", started.elapsed().as_secs_f64());
    let bare = Bare::of(&db);
    let ways: [Way<'_>; 6] = [
        ("bare loop", &|keys| keys.iter().filter(|key| bare.may_contain(key)).count()),
        ("get", &|keys| keys.iter().filter(|key| db.get(key).expect("an answer").is_some()).count()),
        ("may_contain", &|keys| keys.iter().filter(|key| db.may_contain(key) == Verdict::Maybe).count()),
        ("bare loop, 64 at once", &|keys| keys.chunks(BATCH).map(|keys| bare.may_contain_many(keys)).sum()),
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
    for (number, (name, _)) in ways.iter().enumerate() {
        let (median, base) = (median(&mut times[number]), median(&mut times[number / 3 * 3].clone()));
        println!(
            "{:6.1} ns  {:.2} x  {name}, {} of {} maybe or found",
            median.as_secs_f64() * 1e9 / TURN as f64,
            median.as_secs_f64() / base.as_secs_f64(),
            maybes[number],
            TURN * TURNS,
        );
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
