//! Filters without a store: `cargo bench -p micro --bench filter`, or a part of it by name: `-- hot`,
//! `-- others`, `-- small`, `-- build`. For filters larger than the caches,
//! `cargo bench -p micro --bench memory`; for sizes and false-positive rates, `sidebloom filter table`; for
//! more filters from other crates at more sizes, `cargo run --release -p versus -- filters`.
//!
//! All filters get the same keys as 64-bit hashes, before the clock starts. There must be many queries. With
//! only a thousand, the branch predictor memorizes where a filter that stops at the first unset bit stops,
//! and such a filter looks six times as fast as it is.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidebloom::filter::{BuiltFilter, FilterSpec, Isa, Prober, SmallFilter, Verdict, Width};
use std::hint::black_box;
use std::time::Duration;

const QUERIES: u64 = 1 << 16;
/// A filter over this many keys fits in L2.
const HOT_KEYS: u64 = 100_000;

/// Evenly distributed numbers, like key hashes.
fn mix(i: u64) -> u64 {
    let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ x >> 27;
    mix(mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn hashes(from: u64, count: u64) -> Vec<u64> {
    (from..from + count).map(mix).collect()
}

fn absent() -> Vec<u64> {
    hashes(1 << 40, QUERIES)
}

fn parity() -> impl Iterator<Item = (String, FilterSpec)> {
    Width::ALL.into_iter().map(|width| (format!("parity {}", width.number()), FilterSpec::Parity { width }))
}

fn blocked(bits: u32) -> (String, FilterSpec) {
    (format!("blocked bloom {bits}"), FilterSpec::BlockedBloom { bits_per_key: f64::from(bits) })
}

fn group<'a>(c: &'a mut Criterion, name: String, elements: u64) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(elements)).sample_size(40);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    group
}

/// Every kind of filter on every instruction set, with its lines in L2.
fn hot(c: &mut Criterion) {
    let (present, absent) = (hashes(0, HOT_KEYS), absent());
    let mut group = group(c, format!("probe, hot, {HOT_KEYS} keys"), QUERIES);
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

/// The updatable filter against other crates' filters, with the same bits per key.
fn others(c: &mut Criterion) {
    let absent = absent();
    for keys in [10_000, HOT_KEYS, 4_000_000] {
        let present = hashes(0, keys);
        let mut group = group(c, format!("probe, others, {keys} keys"), QUERIES);
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
            group.bench_function(&name, |b| {
                let maybe = |hash: u64| prober.probe(&ours.lines, hash) == Verdict::Maybe;
                b.iter(|| absent.iter().filter(|&&hash| maybe(hash)).count())
            });
            group.bench_function(format!("{name}, batched"), |b| {
                let mut verdicts = Vec::with_capacity(absent.len());
                b.iter(|| {
                    verdicts.clear();
                    prober.probe_many(&ours.lines, &absent, &mut verdicts);
                    verdicts.iter().filter(|&&verdict| verdict == Verdict::Maybe).count()
                })
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

/// Builds from hashes, including the sort.
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

/// Small filters: a binary search, with all values in the cache.
fn small(c: &mut Criterion) {
    let absent = absent();
    let mut group = group(c, "probe, small".to_owned(), QUERIES);
    for keys in [10, 100, 1000, 10_000, SmallFilter::MAX_KEYS as u64] {
        let filter = SmallFilter::from_hashes(8, hashes(0, keys), 0).expect("a filter");
        let maybe = |hash: u64| filter.contains_hash(hash) == Verdict::Maybe;
        group.bench_function(format!("{keys} keys"), |b| {
            b.iter(|| absent.iter().filter(|&&hash| maybe(hash)).count())
        });
    }
    group.finish();
}

criterion_group!(benches, hot, others, small, build);
criterion_main!(benches);
