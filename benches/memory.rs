//! Probes of a GiB of lines beside what the machine takes for bare loads of them: `cargo bench --bench memory`. Less than ten seconds, a GiB.
//!
//! Ways of asking take turns every few thousand questions, since the speed of memory drifts with what was asked of it just before; no
//! question is asked twice, and hashes are made before the clock runs.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use sidebloom::filter::{BuiltFilter, FilterKind, FilterSpec, Line, Lines, Prober, Verdict, Width};
use std::cell::RefCell;
use std::hint::black_box;
use std::ops::RangeFrom;
use std::time::Instant;

const ROUNDS: usize = 41;
/// Turns of each way in a round.
const TURNS: usize = 8;
/// Questions of a turn.
const QUESTIONS: usize = 4096;
/// Questions of a small batch.
const BATCH: usize = 32;

/// A way of asking, which returns something that depends on every answer.
type Ask<'a> = (&'static str, &'a dyn Fn(&[u64]) -> u64);

fn main() {
    for width in [Width::Eight, Width::Twelve] {
        measure(width);
    }
}

fn measure(width: Width) {
    let (kind, lines) = of_a_gib(width);
    let prober = Prober::new(kind);
    let maybe = |hash| u64::from(prober.probe(&lines, hash) == Verdict::Maybe);
    // Of all lines alike: a level that only probes read would have less of its share in the caches.
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
        width.lanes(),
        mib(&lines),
        huge_mib()
    );
    let mut questions = 1 << 40..;
    let mut report = |asks: &[Ask<'_>]| report(asks, &mut questions);
    report(&[
        ("a load, each waits for the last", &|hashes| {
            hashes.iter().map(|&hash| alone(first_byte(hash))).sum()
        }),
        ("a probe, each waits for the last", &|hashes| hashes.iter().map(|&hash| alone(maybe(hash))).sum()),
    ]);
    report(&[
        ("loads, in batches of 32", &|hashes| hashes.chunks(BATCH).map(load_many).sum()),
        ("probes, one after the other", &|hashes| hashes.iter().map(|&hash| maybe(hash)).sum()),
        ("probe_many, 32 at a time", &|hashes| hashes.chunks(BATCH).map(probe_many).sum()),
        ("probe_many, 4096 at a time", &|hashes| probe_many(hashes)),
        ("loads, each batch waits for the last", &|hashes| {
            hashes.chunks(BATCH).map(|batch| alone(load_many(batch))).sum()
        }),
        ("probe_many, each 32 wait for the last", &|hashes| {
            hashes.chunks(BATCH).map(|batch| alone(probe_many(batch))).sum()
        }),
    ]);
}

/// Prints the median of each way, in nanoseconds a question, and the median of its ratio to the first way in the same round.
fn report(asks: &[Ask<'_>], questions: &mut RangeFrom<u64>) {
    let mut rounds = vec![Vec::new(); asks.len()];
    for _ in 0..ROUNDS {
        let mut ns = vec![0.0; asks.len()];
        for _ in 0..TURNS {
            for ((_, ask), ns) in asks.iter().zip(&mut ns) {
                let hashes: Vec<u64> = questions.take(QUESTIONS).map(mix).collect();
                let start = Instant::now();
                black_box(ask(&hashes));
                *ns += start.elapsed().as_nanos() as f64 / (TURNS * QUESTIONS) as f64;
            }
        }
        let base = ns.first().copied().unwrap_or(f64::NAN);
        rounds.iter_mut().zip(ns).for_each(|(all, ns)| all.push((ns, ns / base)));
    }
    for ((name, _), all) in asks.iter().zip(rounds) {
        let (ns, ratios): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        println!("  {name:<38}{:>7.1} ns  {:>5.3}", median(ns), median(ratios));
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The lines of a filter of 2 million keys, each level repeated until all together have a GiB: a probe cannot tell them from a filter
/// that was built of a thousand million keys, which would take a machine of 32 GB.
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

/// The line of a hash among all of them.
fn line_at(lines: &[Line], hash: u64) -> &Line {
    &lines[((u128::from(hash) * lines.len() as u128) >> 64) as usize]
}

/// Evenly spread numbers, as key hashes are.
fn mix(i: u64) -> u64 {
    let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ x >> 27;
    mix(mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The answer, after which nothing starts before it is known. (Made to depend on each other's answers, probes would still overlap, since the
/// processor guesses that the answer is "absent".)
fn alone(answer: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: an instruction of SSE2, which is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    answer
}

/// Huge pages of this process; 0 where the system does not tell.
fn huge_mib() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kib: u64 = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    kib >> 10
}
