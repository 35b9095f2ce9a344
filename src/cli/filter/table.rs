//! `sidebloom filter table`: the figures of all kinds, measured; and the sizes that the formulas give.

use crate::cli::context::{Context, Failure, Outcome};
use crate::cli::{human, progress};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use sidebloom::filter::shape::{exact_fpr, optimal_bits, optimal_hashes};
use sidebloom::filter::{Bloom, BuiltFilter, CountingBloom, FilterSpec, LineFilter, Prober, Verdict, Width};
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

/// Measure the kinds of filters, or print the sizes that the formulas give
///
/// Per kind: bits per key and false-positive rate, expected and measured, on keys that are 8-byte integers; cache lines read by a
/// probe of an absent key; time per probe of such keys, from their hashes (for bloom and counting: from the keys, hash included),
/// one after the other on one thread; time per key to build from hashes. With 1 M keys the filters fit the second or third cache; with
/// 100 M, most probes are cache misses (and the table takes 3 GB of memory and ten minutes or more, most of them for bloom and counting).
#[derive(clap::Args)]
pub struct Args {
    /// Keys of each filter
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    keys: u64,
    /// Print bits and k of a Bloom filter for rates of 1% to 0.0001% and 1 K to 1 M keys instead
    #[arg(long, conflicts_with = "keys")]
    sizes: bool,
}

#[derive(Serialize)]
struct Row {
    kind: String,
    keys: u64,
    bits_per_key: f64,
    expected_fpr: f64,
    measured_fpr: f64,
    lines_per_probe: f64,
    probe_ns: f64,
    build_ns_per_key: f64,
}

#[derive(Serialize)]
struct Size {
    fpr: f64,
    keys: u64,
    bits: u64,
    k: u32,
    bits_per_key: f64,
    exact_fpr: f64,
}

/// Seed of the hashes; members count from 0, absent keys from far above.
const SEED: u64 = 0x7ab1e;
const ABSENT_FROM: u64 = 1 << 40;
/// Enough false positives for two standard deviations of 4 %, within this many probes.
const HITS: f64 = 2500.0;
const PROBES_MAX: f64 = 200e6;
/// Absent keys that are asked for over and over while the clock runs.
const TIMED_KEYS: usize = 1 << 20;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if self.sizes {
            return sizes(cx);
        }
        let specs = Width::ALL.map(|width| FilterSpec::Parity { width });
        let blocked = [8.0, 10.0, 12.0, 16.0].map(|bits_per_key| FilterSpec::BlockedBloom { bits_per_key });
        let bar = progress::bar("measuring", specs.len() as u64 + 7);
        let hashes: Vec<u64> = (0..self.keys).map(|i| LineFilter::hash(i.to_le_bytes(), SEED)).collect();
        let mut rows = Vec::new();
        for spec in specs.into_iter().chain(blocked) {
            rows.push(lines(spec, &hashes)?);
            bar.inc(1);
        }
        drop(hashes);
        for fpr in [0.01, 0.001] {
            rows.push(bloom(self.keys, fpr)?);
            bar.inc(1);
        }
        rows.push(counting(self.keys, 0.01)?);
        bar.finish_and_clear();
        if cx.json {
            rows.iter().try_for_each(|row| cx.print_json(row))?;
        } else {
            print(cx, &rows)?;
        }
        Ok(Outcome::Found)
    }
}

fn lines(spec: FilterSpec, hashes: &[u64]) -> Result<Row, Failure> {
    let start = Instant::now();
    let filter = BuiltFilter::build(spec, hashes)?;
    let built = start.elapsed();
    let prober = Prober::new(filter.kind);
    let maybe = |hash: u64| prober.probe(&filter.lines, hash) == Verdict::Maybe;
    let expected = filter.kind.expected_fpr(filter.keys, filter.lines.len() as u64);
    let absent: Vec<u64> = absent_keys().map(|key| LineFilter::hash(key, SEED)).collect();
    Ok(Row {
        kind: filter.kind.name(),
        keys: filter.keys,
        bits_per_key: 512.0 * filter.lines.len() as f64 / filter.keys as f64,
        expected_fpr: expected,
        measured_fpr: measured(expected, |key| maybe(LineFilter::hash(key, SEED))),
        lines_per_probe: filter.lines_per_probe(),
        probe_ns: timed(&absent, |&hash| maybe(hash)),
        build_ns_per_key: nanos(built, filter.keys),
    })
}

fn bloom(keys: u64, fpr: f64) -> Result<Row, Failure> {
    let mut filter = Bloom::new(keys, fpr)?;
    let start = Instant::now();
    (0..keys).try_for_each(|i| filter.insert(i.to_le_bytes()).map(drop))?;
    let built = start.elapsed();
    let (fill, k) = (filter.fill(), filter.plan().shape.hashes());
    let contains = |key: &[u8; 8]| filter.contains(key) == Verdict::Maybe;
    Ok(Row {
        kind: format!("bloom-k{k}"),
        keys,
        bits_per_key: filter.plan().shape.bits() as f64 / keys as f64,
        expected_fpr: filter.plan().shape.fpr(keys),
        measured_fpr: measured(fpr, |key| contains(&key)),
        lines_per_probe: lines_until_unset(fill, k),
        probe_ns: timed(&absent_keys().collect::<Vec<_>>(), contains),
        build_ns_per_key: nanos(built, keys),
    })
}

fn counting(keys: u64, fpr: f64) -> Result<Row, Failure> {
    let mut filter = CountingBloom::new(keys, fpr)?;
    let start = Instant::now();
    (0..keys).try_for_each(|i| filter.insert(i.to_le_bytes()).map(drop))?;
    let built = start.elapsed();
    let shape = filter.plan().shape;
    let contains = |key: &[u8; 8]| filter.contains(key) == Verdict::Maybe;
    Ok(Row {
        kind: format!("counting-k{}", shape.hashes()),
        keys,
        bits_per_key: 4.0 * shape.bits() as f64 / keys as f64,
        expected_fpr: shape.fpr(keys),
        measured_fpr: measured(fpr, |key| contains(&key)),
        lines_per_probe: lines_until_unset(filter.ones() as f64 / shape.bits() as f64, shape.hashes()),
        probe_ns: timed(&absent_keys().collect::<Vec<_>>(), contains),
        build_ns_per_key: nanos(built, keys),
    })
}

fn absent_keys() -> impl Iterator<Item = [u8; 8]> {
    (ABSENT_FROM..).take(TIMED_KEYS).map(u64::to_le_bytes)
}

/// A probe goes on while the bits are set, each in a line of its own: 1 + ρ + ρ² + … + ρ^(k−1).
fn lines_until_unset(fill: f64, k: u32) -> f64 {
    (0..k).map(|i| fill.powi(i as i32)).sum()
}

/// The share of absent keys that pass.
fn measured(expected: f64, maybe: impl Fn([u8; 8]) -> bool) -> f64 {
    let probes = (HITS / expected).min(PROBES_MAX) as u64;
    let hits = (ABSENT_FROM..ABSENT_FROM + probes).filter(|i| maybe(i.to_le_bytes())).count();
    hits as f64 / probes as f64
}

/// Nanoseconds per call, the best of several rounds over all keys.
fn timed<K>(keys: &[K], maybe: impl Fn(&K) -> bool) -> f64 {
    let round = || {
        let start = Instant::now();
        black_box(keys.iter().filter(|key| maybe(key)).count());
        nanos(start.elapsed(), keys.len() as u64)
    };
    (0..5).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn nanos(elapsed: Duration, count: u64) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

fn print(cx: &Context, rows: &[Row]) -> Result<(), Failure> {
    let mut table = new_table([
        "kind",
        "bits/key",
        "FPR expected",
        "FPR measured",
        "lines/probe",
        "ns/probe",
        "build ns/key",
    ]);
    for row in rows {
        table.add_row([
            row.kind.clone(),
            format!("{:.2}", row.bits_per_key),
            human::percent(row.expected_fpr, 1.0),
            human::percent(row.measured_fpr, 1.0),
            format!("{:.3}", row.lines_per_probe),
            format!("{:.1}", row.probe_ns),
            format!("{:.0}", row.build_ns_per_key),
        ]);
    }
    print_table(cx, table)
}

fn sizes(cx: &Context) -> Result<Outcome, Failure> {
    let mut table = new_table(["FPR", "keys", "bits (m)", "bytes", "k", "bits/key", "FPR, exactly"]);
    for fpr in [0.01, 0.001, 0.0001, 0.00001, 0.000001] {
        for keys in [1_000, 10_000, 100_000, 1_000_000] {
            let bits = optimal_bits(keys, fpr)?;
            let k = optimal_hashes(bits, keys);
            let exact_fpr = exact_fpr(keys, bits, k);
            let bits_per_key = bits as f64 / keys as f64;
            if cx.json {
                cx.print_json(&Size { fpr, keys, bits, k, bits_per_key, exact_fpr })?;
                continue;
            }
            table.add_row([
                human::percent(fpr, 1.0),
                human::count(keys),
                human::count(bits),
                human::bytes(bits as f64 / 8.0),
                k.to_string(),
                format!("{bits_per_key:.2}"),
                human::percent(exact_fpr, 1.0),
            ]);
        }
    }
    if !cx.json {
        print_table(cx, table)?;
    }
    Ok(Outcome::Found)
}

fn new_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED.with_rounded_corners());
    table.set_header(header);
    table
}

fn print_table(cx: &Context, mut table: Table) -> Result<(), Failure> {
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    Ok(writeln!(cx.out(), "{table}")?)
}
