//! Probes filters of every kind and width for keys that they hold, and stops at the first false negative.
//! There must never be one (invariant I1 of the design).
//!
//! ```text
//! cargo run --release --example no_false_negatives -- --probes 1000000000
//! ```

use sidebloom::KeyHasher;
use sidebloom::filter::{
    AnyFilter, Bloom, BuiltFilter, CountingBloom, FilterSpec, HashFunction, Isa, LineFilter, Plan, Prober,
    ScalableBloom, SmallFilter, Verdict, Width,
};
use std::process::ExitCode;

/// Numbers of keys, from one to more than fit into the CPU cache.
const SIZES: [u64; 6] = [1, 64, 1000, 30_000, 300_000, 3_000_000];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let probes = match &args[..] {
        [] => Some(10_000_000),
        [name, number] if name == "--probes" => number.parse().ok(),
        _ => None,
    };
    let Some(probes) = probes else {
        eprintln!("usage: no_false_negatives [--probes N]");
        return ExitCode::from(2);
    };
    match run(probes) {
        Ok(asked) => {
            println!("{asked} probes of present keys, no false negative");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("no_false_negatives: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Rounds over all kinds, sizes and instruction sets, each with different keys, up to `probes` probes.
fn run(probes: u64) -> Result<u64, String> {
    let mut asked = 0;
    for round in 0.. {
        for size in SIZES {
            for spec in specs() {
                asked += lines(spec, size, round)?;
                if asked >= probes {
                    return Ok(asked);
                }
            }
            if size <= 300_000 {
                asked += keyed(size, round).map_err(|e| e.to_string())??;
            }
        }
    }
    Ok(asked)
}

fn specs() -> impl Iterator<Item = FilterSpec> {
    let parity = Width::ALL.map(|width| FilterSpec::Parity { width });
    parity
        .into_iter()
        .chain([6.0, 10.0, 16.0, 24.0].map(|bits_per_key| FilterSpec::BlockedBloom { bits_per_key }))
}

fn lines(spec: FilterSpec, size: u64, round: u64) -> Result<u64, String> {
    let hashes: Vec<u64> = (0..size).map(|i| KeyHasher::from(round).hash(&i.to_le_bytes())).collect();
    let filter = BuiltFilter::build(spec, &hashes).map_err(|e| e.to_string())?;
    let mut asked = 0;
    for isa in Isa::available() {
        let prober = Prober::with_isa(filter.kind, isa);
        let denied = hashes.iter().position(|&hash| prober.probe(&filter.lines, hash) == Verdict::Absent);
        let mut at_once = Vec::new();
        prober.probe_many(&filter.lines, &hashes, &mut at_once);
        let denied = denied.or(at_once.iter().position(|&verdict| verdict == Verdict::Absent));
        if let Some(i) = denied {
            return Err(format!("{spec:?} of {size} keys denies {:016x} on {}", hashes[i], isa.name()));
        }
        asked += size + at_once.len() as u64;
    }
    Ok(asked)
}

/// The kinds that are probed by key.
fn keyed(size: u64, round: u64) -> sidebloom::Result<Result<u64, String>> {
    let mut asked = 0;
    for hash in [HashFunction::Xxh3(round), HashFunction::Murmur3(round), HashFunction::SipHash13([round, 1])]
    {
        let plan = Plan { hash, ..Plan::new(size, 0.01)? };
        let filters = [
            AnyFilter::Bloom(Bloom::with_plan(plan)?),
            AnyFilter::Counting(CountingBloom::with_plan(plan)?),
            AnyFilter::Scalable(ScalableBloom::new(100, 0.01)?),
            AnyFilter::Lines(LineFilter::empty_blocked(size, 10.0, round)?),
        ];
        for mut filter in filters {
            (0..size).try_for_each(|i| filter.insert(i.to_be_bytes()).map(drop))?;
            if let Some(key) = (0..size).find(|i| filter.contains(i.to_be_bytes()) == Verdict::Absent) {
                return Ok(Err(format!("a {} filter of {size} keys denies {key}", filter.name())));
            }
            asked += size;
        }
    }
    if size <= SmallFilter::MAX_KEYS as u64 {
        let small = SmallFilter::build(8, (0..size).map(u64::to_be_bytes), round)?;
        if let Some(key) = (0..size).find(|i| small.contains(i.to_be_bytes()) == Verdict::Absent) {
            return Ok(Err(format!("a small filter of {size} keys denies {key}")));
        }
        asked += size;
    }
    Ok(Ok(asked))
}
