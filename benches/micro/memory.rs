//! Compares probes of a GiB of filter lines with plain loads of the same lines:
//! `cargo bench -p micro --bench memory`. Takes less than ten seconds and a GiB of memory.
//!
//! The access patterns take turns every few thousand queries, because memory speed drifts with recent
//! accesses. No query is repeated, and hashes are computed before the clock starts.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::filter::{BuiltFilter, FilterKind, FilterSpec, Line, Lines, Prober, Verdict, Width};
use std::cell::RefCell;
use std::hint::black_box;
use std::ops::RangeFrom;
use std::time::Instant;

const ROUNDS: usize = 41;
/// Turns of each access pattern in a round.
const TURNS: usize = 8;
/// Queries in a turn.
const QUERIES: usize = 4096;
/// Queries in a small batch.
const BATCH: usize = 32;

/// The name of an access pattern and its function, whose result depends on every answer.
type AccessPattern<'a> = (&'static str, &'a dyn Fn(&[u64]) -> u64);

fn main() {
    for width in [Width::Eight, Width::Twelve] {
        measure(width);
    }
}

fn measure(width: Width) {
    let (kind, lines) = of_a_gib(width);
    let prober = Prober::new(kind);
    let maybe = |hash| u64::from(prober.probe(&lines, hash) == Verdict::Maybe);
    // Loads hit all lines equally. If they skipped a level that probes read, less of it would be cached.
    let first_byte = |hash| u64::from(line_at(&lines, hash)[0]);
    let whole = Prober::new(FilterKind::BlockedBloom { k: 1 });
    let fetch = |hash| whole.prefetch(&lines, hash);
    let load_many = |hashes: &[u64]| {
        hashes.iter().for_each(|&hash| fetch(hash));
        hashes.iter().map(|&hash| first_byte(hash)).sum::<u64>()
    };
    let verdicts = RefCell::new(Vec::new());
    let probe_many = |hashes: &[u64]| {
        let mut verdicts = verdicts.borrow_mut();
        verdicts.clear();
        prober.probe_many(&lines, hashes, &mut verdicts);
        verdicts.iter().filter(|&&verdict| verdict == Verdict::Maybe).count() as u64
    };

    let mib = |lines: &[Line]| size_of_val(lines) >> 20;
    println!(
        "parity {}: {} MiB of lines, {} MiB of them on huge pages",
        width.number(),
        mib(&lines),
        huge_mib()
    );
    let mut queries = 1 << 40..;
    let mut report = |patterns: &[AccessPattern<'_>]| report(patterns, &mut queries);
    report(&[
        ("load, one at a time", &|hashes| hashes.iter().map(|&hash| serialized(first_byte(hash))).sum()),
        ("probe, one at a time", &|hashes| hashes.iter().map(|&hash| serialized(maybe(hash))).sum()),
    ]);
    report(&[
        ("loads, in batches of 32", &|hashes| hashes.chunks(BATCH).map(load_many).sum()),
        ("probes, in a loop", &|hashes| hashes.iter().map(|&hash| maybe(hash)).sum()),
        ("probe_many, in batches of 32", &|hashes| hashes.chunks(BATCH).map(probe_many).sum()),
        ("probe_many, in batches of 4096", &|hashes| probe_many(hashes)),
        ("loads, one batch of 32 at a time", &|hashes| {
            hashes.chunks(BATCH).map(|batch| serialized(load_many(batch))).sum()
        }),
        ("probe_many, one batch of 32 at a time", &|hashes| {
            hashes.chunks(BATCH).map(|batch| serialized(probe_many(batch))).sum()
        }),
    ]);
}

/// Prints each pattern's median nanoseconds per query, and its median ratio to the first pattern per round.
fn report(patterns: &[AccessPattern<'_>], queries: &mut RangeFrom<u64>) {
    let mut rounds = vec![Vec::new(); patterns.len()];
    for _ in 0..ROUNDS {
        let mut ns = vec![0.0; patterns.len()];
        for _ in 0..TURNS {
            for ((_, access), ns) in patterns.iter().zip(&mut ns) {
                let hashes: Vec<u64> = queries.take(QUERIES).map(mix).collect();
                let start = Instant::now();
                black_box(access(&hashes));
                *ns += start.elapsed().as_nanos() as f64 / (TURNS * QUERIES) as f64;
            }
        }
        let base = ns.first().copied().unwrap_or(f64::NAN);
        rounds.iter_mut().zip(ns).for_each(|(all, ns)| all.push((ns, ns / base)));
    }
    for ((name, _), all) in patterns.iter().zip(rounds) {
        let (ns, ratios): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        println!("  {name:<38}{:>7.1} ns  {:>5.3}", median(ns), median(ratios));
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The lines of a filter over 2 million keys, with each level repeated until they fill a GiB. To a probe they
/// look like a filter over a billion keys, which would take a machine with 32 GB to build.
fn of_a_gib(width: Width) -> (FilterKind, Lines) {
    let keys: Vec<u64> = (0..2_000_000).map(mix).collect();
    let small = BuiltFilter::build(FilterSpec::Parity { width }, &keys).expect("a filter");
    let FilterKind::Parity { mut levels, .. } = small.kind else {
        unreachable!("a parity filter was asked for")
    };
    let times = (1 << 30) / size_of_val(&small.lines[..]);
    let mut lines = Lines::zeroed(times * small.lines.len()).expect("a GiB of memory");
    let (mut from, mut to) = (&small.lines[..], &mut lines[..]);
    for level in &mut levels {
        let (here, below) = from.split_at(*level as usize);
        let (wide, rest) = to.split_at_mut(times * here.len());
        wide.chunks_mut(here.len().max(1)).for_each(|copy| copy.copy_from_slice(here));
        (from, to) = (below, rest);
        *level *= times as u32;
    }
    (FilterKind::Parity { width, levels }, lines)
}

/// The line that a hash selects among all lines.
fn line_at(lines: &[Line], hash: u64) -> &Line {
    &lines[((u128::from(hash) * lines.len() as u128) >> 64) as usize]
}

/// Evenly distributed numbers, like key hashes.
fn mix(i: u64) -> u64 {
    let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ x >> 27;
    mix(mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Returns the answer, and lets nothing start before it is known. (Making each probe depend on the previous
/// answer is not enough: the branch predictor guesses "absent", so probes would still overlap.)
fn serialized(answer: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2, which has this instruction, is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    answer
}

/// Huge pages of this process in MiB; 0 if the system does not report them.
fn huge_mib() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kib: u64 = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    kib >> 10
}
