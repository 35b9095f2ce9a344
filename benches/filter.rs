//! Filters alone: `cargo bench --bench filter`. Comparisons with other filters: `cargo run --release -p versus -- filters`.

#![expect(clippy::expect_used, reason = "a benchmark: criterion writes its own main, and a failure ends it")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sidebloom::filter::{BuiltFilter, FilterSpec, Prober, Width};
use std::hint::black_box;

/// In the processor's caches, and beyond the second.
const SIZES: [u64; 2] = [10_000, 4_000_000];
const QUESTIONS: u64 = 1024;

/// Evenly spread numbers, as key hashes are.
fn hashes(from: u64, count: u64) -> Vec<u64> {
    let mix = |x: u64| (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ x >> 27;
    (from..from + count).map(|i| mix(mix(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))).collect()
}

fn specs() -> Vec<(String, FilterSpec)> {
    let parity = Width::ALL.map(|width| (format!("parity {}", width.lanes()), FilterSpec::Parity { width }));
    let bloom = [10.0, 16.0]
        .map(|bits| (format!("blocked bloom {bits}"), FilterSpec::BlockedBloom { bits_per_key: bits }));
    parity.into_iter().chain(bloom).collect()
}

fn probe(c: &mut Criterion) {
    let absent = hashes(1 << 40, QUESTIONS);
    for keys in SIZES {
        let present = hashes(0, keys);
        let mut group = c.benchmark_group(format!("probe, {keys} keys"));
        group.throughput(Throughput::Elements(QUESTIONS));
        for (name, spec) in specs() {
            let filter = BuiltFilter::build(spec, &present).expect("a filter");
            let prober = Prober::new(filter.kind);
            group.bench_function(BenchmarkId::new(name, "absent"), |b| {
                b.iter(|| absent.iter().for_each(|&hash| _ = black_box(prober.probe(&filter.lines, hash))))
            });
        }
        group.finish();
    }
}

fn build(c: &mut Criterion) {
    let keys = 100_000;
    let present = hashes(0, keys);
    let mut group = c.benchmark_group(format!("build, {keys} keys"));
    group.throughput(Throughput::Elements(keys)).sample_size(20);
    for (name, spec) in specs() {
        group.bench_function(name, |b| {
            b.iter(|| BuiltFilter::build(black_box(spec), &present).expect("a filter"))
        });
    }
    group.finish();
}

criterion_group!(benches, probe, build);
criterion_main!(benches);
