//! Filters alone: `cargo bench --bench filter`, and a part of it by name: `-- hot`, `-- others`, `-- memory`, `-- build`. Sizes and
//! false-positive rates: `sidebloom filter table`. More rivals, at more sizes: `cargo run --release -p versus -- filters`.
//!
//! All filters get the same keys as 64-bit hashes, before the clock runs. Questions are many: of a thousand, the processor learns by
//! heart where a filter that stops at the first unset bit stops, and such filters look six times as fast as they are.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidebloom::filter::{BuiltFilter, FilterKind, FilterSpec, Isa, Line, Lines, Prober, Verdict, Width};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

const QUESTIONS: u64 = 1 << 16;
/// Keys of which a filter fits the second cache.
const HOT_KEYS: u64 = 100_000;
/// Questions of a batch.
const BATCH: usize = 32;

/// Evenly spread numbers, as key hashes are.
fn mix(i: u64) -> u64 {
    let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ x >> 27;
    mix(mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn hashes(from: u64, count: u64) -> Vec<u64> {
    (from..from + count).map(mix).collect()
}

fn absent() -> Vec<u64> {
    hashes(1 << 40, QUESTIONS)
}

fn parity() -> impl Iterator<Item = (String, FilterSpec)> {
    Width::ALL.into_iter().map(|width| (format!("parity {}", width.lanes()), FilterSpec::Parity { width }))
}

fn blocked(bits: u32) -> (String, FilterSpec) {
    (format!("blocked bloom {bits}"), FilterSpec::BlockedBloom { bits_per_key: f64::from(bits) })
}

fn group<'a>(c: &'a mut Criterion, name: String, questions: u64) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(questions)).sample_size(40);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group
}

/// Every kind on every instruction set, its lines in the second cache.
fn hot(c: &mut Criterion) {
    let (present, absent) = (hashes(0, HOT_KEYS), absent());
    let mut group = group(c, format!("probe, hot, {HOT_KEYS} keys"), QUESTIONS);
    for (name, spec) in parity().chain([10, 12, 16].map(blocked)) {
        let filter = BuiltFilter::build(spec, &present).expect("a filter");
        for isa in Isa::available() {
            let prober = Prober::with_isa(filter.kind, isa);
            let maybe = |hash: u64| prober.probe(&filter.lines, hash) == Verdict::Maybe;
            group.bench_function(BenchmarkId::new(&name, isa.name()), |b| {
                b.iter(|| absent.iter().filter(|&&hash| maybe(hash)).count())
            });
        }
    }
    group.finish();
}

/// The updatable filter beside those of other crates: as many bits per key for each.
fn others(c: &mut Criterion) {
    let absent = absent();
    for keys in [10_000, HOT_KEYS, 4_000_000] {
        let present = hashes(0, keys);
        let mut group = group(c, format!("probe, others, {keys} keys"), QUESTIONS);
        for bits in [10, 16] {
            let (name, spec) = blocked(bits);
            let ours = BuiltFilter::build(spec, &present).expect("a filter");
            let prober = Prober::new(ours.kind);
            let mut split_block = sbbf_rs_safe::Filter::new(bits as usize, present.len());
            let mut fast = fastbloom::BloomFilter::with_num_bits(bits as usize * present.len())
                .seed(&1)
                .expected_items(present.len());
            for &hash in &present {
                split_block.insert_hash(hash);
                fast.insert_hash(hash);
            }
            group.bench_function(name, |b| {
                let maybe = |hash: u64| prober.probe(&ours.lines, hash) == Verdict::Maybe;
                b.iter(|| absent.iter().filter(|&&hash| maybe(hash)).count())
            });
            group.bench_function(format!("sbbf-rs {bits}"), |b| {
                b.iter(|| absent.iter().filter(|&&hash| split_block.contains_hash(hash)).count())
            });
            group.bench_function(format!("fastbloom {bits}"), |b| {
                b.iter(|| absent.iter().filter(|&&hash| fast.contains_hash(hash)).count())
            });
        }
        group.finish();
    }
}

/// The lines of a filter of 2 million keys, each level repeated until all together have a GiB: a probe cannot tell them from a filter
/// that was built of a thousand million keys, which would take a machine of 32 GB.
fn of_a_gib(width: Width) -> (FilterKind, Lines) {
    let small = BuiltFilter::build(FilterSpec::Parity { width }, &hashes(0, 2_000_000)).expect("a filter");
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

/// Probes of a GiB of lines beside what its memory takes for one load, on the same pages.
fn memory(c: &mut Criterion) {
    let mut group = group(c, "probe, memory, 1 GiB".to_owned(), QUESTIONS);
    group.sample_size(20);
    // No question is asked twice, or its line would be in a cache.
    let asked = Cell::new(1 << 40);
    let fresh = || {
        let first = asked.replace(asked.get() + QUESTIONS);
        (first..first + QUESTIONS).map(mix)
    };
    for (name, width) in [("parity 8", Width::Eight), ("parity 12", Width::Twelve)] {
        let (kind, lines) = of_a_gib(width);
        let prober = Prober::new(kind);
        println!("{name}: {} MiB of lines, {} MiB of them on huge pages", mib(&lines), huge_mib());
        let maybe = |hash: u64| prober.probe(&lines, hash) == Verdict::Maybe;
        // Where the next one goes depends on what this one found: nothing overlaps.
        group.bench_function(BenchmarkId::new(name, "a load, each waits for the last"), |b| {
            let load = |hash: u64| line_at(&lines, hash).first().copied().unwrap_or(0);
            b.iter(|| fresh().fold(0, |last, hash| u64::from(load(hash ^ last))))
        });
        group.bench_function(BenchmarkId::new(name, "a probe, each waits for the last"), |b| {
            b.iter(|| fresh().fold(0, |last, hash| u64::from(maybe(hash ^ last))))
        });
        group.bench_function(BenchmarkId::new(name, "a probe, one after the other"), |b| {
            b.iter(|| fresh().filter(|&hash| maybe(hash)).count())
        });
        group.bench_function(BenchmarkId::new(name, format!("a probe, in batches of {BATCH}")), |b| {
            let mut batch = [0; BATCH];
            b.iter(|| {
                let mut questions = fresh();
                let mut found = 0;
                for _ in 0..QUESTIONS as usize / BATCH {
                    batch.iter_mut().zip(&mut questions).for_each(|(to, hash)| *to = hash);
                    batch.iter().for_each(|&hash| prober.prefetch(&lines, hash));
                    found += batch.iter().filter(|&&hash| maybe(hash)).count();
                }
                found
            })
        });
    }
    group.finish();
}

/// The line that a probe of as many lines, all in one level, would read.
fn line_at(lines: &[Line], hash: u64) -> &Line {
    &lines[((u128::from(hash) * lines.len() as u128) >> 64) as usize]
}

fn mib(lines: &[Line]) -> usize {
    size_of_val(lines) >> 20
}

/// Huge pages of this process; 0 where the system does not tell.
fn huge_mib() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kib: u64 = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0);
    kib >> 10
}

/// From hashes, the sort included.
fn build(c: &mut Criterion) {
    for keys in [HOT_KEYS, 10_000_000] {
        let present = hashes(0, keys);
        let mut group = group(c, format!("build, {keys} keys"), keys);
        group.sample_size(10);
        for (name, spec) in parity().chain([blocked(10)]) {
            group.bench_function(name, |b| {
                b.iter(|| BuiltFilter::build(black_box(spec), &present).expect("a filter"))
            });
        }
        group.finish();
    }
}

criterion_group!(benches, hot, others, memory, build);
criterion_main!(benches);
