//! Measures one kind of filter.

use super::keys::{Look, for_each};
use crate::context::Failure;
use serde::Serialize;
use sidebloom::KeyHasher;
use sidebloom::filter::{Bloom, BuiltFilter, CountingBloom, FilterSpec, Isa, Lines, Prober, Shape, Verdict};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// One row of the table.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub kind: String,
    /// Keys in the filter.
    pub keys: u64,
    /// Its size.
    pub bits_per_key: f64,
    /// The theoretical rate, 0 to 1.
    pub expected_fpr: f64,
    /// The share of absent keys that passed.
    pub measured_fpr: f64,
    /// Cache lines that a probe of an absent key reads, on average.
    pub lines_per_probe: f64,
    /// Nanoseconds per such probe on each instruction set of this machine, the fastest last; a single figure
    /// if there is only one engine.
    pub probe_ns: Vec<ProbeTime>,
    /// Nanoseconds to build, per key.
    pub build_ns_per_key: f64,
}

/// How long a probe takes on an instruction set.
#[derive(Debug, Serialize)]
pub struct ProbeTime {
    /// Its name.
    pub isa: &'static str,
    /// Nanoseconds, one probe after the other on one thread.
    pub ns: f64,
}

/// The keys to measure with.
#[derive(Clone, Copy)]
pub struct Keys {
    /// Members are numbered from 0.
    pub count: u64,
    pub look: Look,
}

/// Seed of the hashes. Members are numbered from 0, absent keys from far above.
const SEED: u64 = 0x7ab1e;
const ABSENT_FROM: u64 = 1 << 40;
/// Enough false positives that two standard deviations are 2 %, within this many probes.
const HITS: f64 = 10_000.0;
const PROBES_MAX: f64 = 400e6;
/// Absent keys probed while timing, and keys per separately timed part.
const TIMED_KEYS: u64 = 1 << 20;
const TIMED_PART: usize = 1 << 16;
const ROUNDS: usize = 7;

impl Keys {
    /// The hashes of all members.
    pub fn hashes(self) -> Vec<u64> {
        self.hashes_of(0..self.count)
    }

    fn hashes_of(self, numbers: std::ops::Range<u64>) -> Vec<u64> {
        let mut hashes = Vec::with_capacity((numbers.end - numbers.start) as usize);
        for_each(self.look, numbers, |key| hashes.push(KeyHasher::from(SEED).hash(key)));
        hashes
    }

    fn absent(self) -> std::ops::Range<u64> {
        ABSENT_FROM..ABSENT_FROM + TIMED_KEYS
    }

    /// Inserts all members. Returns nanoseconds per key.
    fn fill(self, mut insert: impl FnMut(&[u8]) -> sidebloom::filter::Result<bool>) -> Result<f64, Failure> {
        let (start, mut outcome) = (Instant::now(), Ok(true));
        for_each(self.look, 0..self.count, |key| {
            if outcome.is_ok() {
                outcome = insert(key);
            }
        });
        outcome?;
        Ok(nanos(start.elapsed(), self.count))
    }

    /// The share of absent keys that pass, measured with as many keys as `expected` requires.
    fn measured(self, expected: f64, maybe: impl Fn(&[u8]) -> bool) -> f64 {
        let probes = (HITS / expected).min(PROBES_MAX) as u64;
        let mut hits = 0u64;
        for_each(self.look, ABSENT_FROM..ABSENT_FROM + probes, |key| hits += u64::from(maybe(key)));
        hits as f64 / probes as f64
    }
}

/// A parity or blocked Bloom filter, built from hashes.
pub fn of_lines(spec: FilterSpec, keys: Keys, hashes: &[u64]) -> Result<Row, Failure> {
    let start = Instant::now();
    let filter = BuiltFilter::build(spec, hashes)?;
    let build_ns_per_key = nanos(start.elapsed(), filter.keys);
    let lines: &Lines = &filter.lines;
    let expected = filter.expected_fpr();
    let absent = keys.hashes_of(keys.absent());
    let time = |isa: Isa| {
        let prober = Prober::with_isa(filter.kind, isa);
        let ns = timed(&absent, |&hash| prober.probe(lines, hash) == Verdict::Maybe);
        ProbeTime { isa: isa.name(), ns }
    };
    let prober = Prober::new(filter.kind);
    Ok(Row {
        kind: filter.kind.name(),
        keys: filter.keys,
        bits_per_key: size_of_val(&lines[..]) as f64 * 8.0 / filter.keys as f64,
        expected_fpr: expected,
        measured_fpr: keys
            .measured(expected, |key| prober.probe(lines, KeyHasher::from(SEED).hash(key)) == Verdict::Maybe),
        lines_per_probe: filter.lines_per_probe(),
        probe_ns: Isa::available().map(time).collect(),
        build_ns_per_key,
    })
}

/// The classic Bloom filter, filled key by key.
pub fn bloom(keys: Keys, fpr: f64) -> Result<Row, Failure> {
    let mut filter = Bloom::new(keys.count, fpr)?;
    let build_ns_per_key = keys.fill(|key| filter.insert(key))?;
    let shape = filter.plan().shape;
    let row = Row {
        kind: format!("bloom-k{}", shape.hashes()),
        bits_per_key: shape.bits() as f64 / keys.count as f64,
        lines_per_probe: lines_until_unset(filter.fill(), shape.hashes()),
        build_ns_per_key,
        ..keys.keyed(shape, |key| filter.contains(key) == Verdict::Maybe)
    };
    Ok(row)
}

/// The counting Bloom filter, filled key by key.
pub fn counting(keys: Keys, fpr: f64) -> Result<Row, Failure> {
    let mut filter = CountingBloom::new(keys.count, fpr)?;
    let build_ns_per_key = keys.fill(|key| filter.insert(key))?;
    let shape = filter.plan().shape;
    let fill = filter.ones() as f64 / shape.bits() as f64;
    Ok(Row {
        kind: format!("counting-k{}", shape.hashes()),
        bits_per_key: 4.0 * shape.bits() as f64 / keys.count as f64,
        lines_per_probe: lines_until_unset(fill, shape.hashes()),
        build_ns_per_key,
        ..keys.keyed(shape, |key| filter.contains(key) == Verdict::Maybe)
    })
}

impl Keys {
    /// Measures absent keys in a filter that hashes its keys itself.
    fn keyed(self, shape: Shape, maybe: impl Fn(&[u8]) -> bool) -> Row {
        let mut absent = Vec::new();
        for_each(self.look, self.absent(), |key| absent.push(key.to_vec()));
        let expected = shape.fpr(self.count);
        Row {
            kind: String::new(),
            keys: self.count,
            bits_per_key: 0.0,
            expected_fpr: expected,
            measured_fpr: self.measured(expected, &maybe),
            lines_per_probe: 0.0,
            probe_ns: vec![ProbeTime { isa: "scalar", ns: timed(&absent, |key| maybe(key)) }],
            build_ns_per_key: 0.0,
        }
    }
}

/// A probe stops at the first unset bit, and each bit is in a different line: 1 + ρ + ρ² + … + ρ^(k−1).
fn lines_until_unset(fill: f64, k: u32) -> f64 {
    (0..k).map(|i| fill.powi(i as i32)).sum()
}

/// Nanoseconds per call: the mean over the parts of the keys, each the best of several rounds.
fn timed<K>(keys: &[K], maybe: impl Fn(&K) -> bool) -> f64 {
    let mut best = vec![f64::INFINITY; keys.len().div_ceil(TIMED_PART)];
    for _ in 0..ROUNDS {
        for (best, part) in best.iter_mut().zip(keys.chunks(TIMED_PART)) {
            let start = Instant::now();
            black_box(part.iter().filter(|key| maybe(key)).count());
            *best = best.min(nanos(start.elapsed(), part.len() as u64));
        }
    }
    best.iter().sum::<f64>() / best.len() as f64
}

fn nanos(elapsed: Duration, count: u64) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}
