//! `versus filters`: filters alone, without a store. All of them get the same random 64-bit keys as hashes.

mod others;
mod ours;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use crate::engine::Result;
use crate::format::{count, number};
use crate::keys::mix;
use crate::results::{self, Arena, FILTERS_FILE, Machine};
use crate::table;
use serde::{Deserialize, Serialize};
use sidebloom::filter::{FilterSpec, Width};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Keys in a call of batched questions.
const QUESTIONS: usize = 32;
/// Each time is the best of so many.
const TIMES: usize = 3;

/// Measure filters alone: a table on the terminal, all figures in DIR/filters.json
#[derive(clap::Args)]
pub struct Args {
    /// Where the figures are written
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keys in a filter: one size that stays in the processor's caches, one that does not
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [100_000, 50_000_000], value_parser = clap::value_parser!(u64).range(1000..=2_000_000_000))]
    keys: Vec<u64>,
    /// Questions about absent keys
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    questions: u64,
    /// Fewer keys and questions: seconds instead of minutes
    #[arg(long)]
    quick: bool,
}

/// A filter over 64-bit hashes.
trait Filter {
    /// Its size.
    fn bytes(&self) -> usize;

    /// What is asked for a key: itself, unless the filter hashes it first; not timed.
    fn prepared(&self, key: u64) -> u64 {
        key
    }

    /// False only for a key that was not added.
    fn may_contain(&self, prepared: u64) -> bool;

    /// How many of many may be there, asked in the filter's fastest way.
    fn batched(&self, _keys: &[u64], _prepared: &[u64]) -> Option<usize> {
        None
    }
}

/// One filter at one size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FilterResult {
    /// As tables show it.
    pub name: String,
    /// Keys in it.
    pub keys: u64,
    /// Its size.
    pub bits_per_key: f64,
    /// The share of absent keys for which it says "maybe".
    pub fpr: f64,
    /// Nanoseconds of a question about an absent key, one after the other.
    pub probe_ns: f64,
    /// Nanoseconds of a question, many asked at once; `None` where the filter has no way to.
    pub batched_ns: Option<f64>,
    /// Nanoseconds to build it, for each key.
    pub build_ns: f64,
}

type Build = Box<dyn Fn(&[u64]) -> Result<Box<dyn Filter>>>;

impl Args {
    /// Measures all filters.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.keys = vec![20_000, 1_000_000];
            self.questions = 500_000;
        }
        std::fs::create_dir_all(&self.out)?;
        let mut results = Vec::new();
        for &keys in &self.keys {
            let first = results.len();
            for (name, build) in contestants() {
                eprintln!("{name}, {} keys", count(keys as f64));
                results.push(self.measure(name, keys, &build)?);
            }
            println!("{}", table::aligned(&rows(&results[first..])));
        }
        let file = self.out.join(FILTERS_FILE);
        results::write(
            &file,
            &Arena { date: crate::session::now(), machine: Machine::here(&self.out), results },
        )?;
        println!("all figures: {}", file.display());
        Ok(())
    }

    fn measure(&self, name: String, keys: u64, build: &Build) -> Result<FilterResult> {
        let present: Vec<u64> = (0..keys).map(|i| mix(2 * i)).collect();
        let absent: Vec<u64> = (0..self.questions).map(|i| mix(2 * i + 1)).collect();
        let begin = Instant::now();
        let filter = build(&present)?;
        let build_ns = begin.elapsed().as_nanos() as f64 / keys as f64;
        if let Some(key) = present.iter().find(|&&key| !filter.may_contain(filter.prepared(key))) {
            return Err(format!("WRONG ANSWER: {name} denies key {key:#x} that it was built from").into());
        }
        let prepared: Vec<u64> = absent.iter().map(|&key| filter.prepared(key)).collect();
        let (probe_ns, maybes) =
            fastest(prepared.len(), || prepared.iter().filter(|&&key| filter.may_contain(key)).count());
        let batched = filter.batched(&absent[..QUESTIONS], &prepared[..QUESTIONS]).is_some();
        let batched_ns =
            batched.then(|| fastest(prepared.len(), || filter.batched(&absent, &prepared).unwrap_or(0)).0);
        Ok(FilterResult {
            name,
            keys,
            bits_per_key: 8.0 * filter.bytes() as f64 / keys as f64,
            fpr: maybes as f64 / self.questions as f64,
            probe_ns,
            batched_ns,
            build_ns,
        })
    }
}

/// Nanoseconds for each question, and what was answered.
fn fastest(questions: usize, ask: impl Fn() -> usize) -> (f64, usize) {
    let time = || {
        let begin = Instant::now();
        let answer = black_box(ask());
        (begin.elapsed().as_nanos() as f64 / questions as f64, answer)
    };
    (0..TIMES).map(|_| time()).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 0))
}

fn contestants() -> Vec<(String, Build)> {
    let mut all: Vec<(String, Build)> = Vec::new();
    let mut add = |name: String, build: Build| all.push((name, build));
    for width in Width::ALL {
        let spec = FilterSpec::Parity { width };
        add(
            format!("Parity {}", width.lanes()),
            Box::new(move |keys| Ok(Box::new(ours::Ours::build(spec, keys)?))),
        );
    }
    for bits in [8.0, 10.0, 12.0, 16.0] {
        let spec = FilterSpec::BlockedBloom { bits_per_key: bits };
        add(
            format!("BlockedBloom {bits}"),
            Box::new(move |keys| Ok(Box::new(ours::Ours::build(spec, keys)?))),
        );
    }
    #[cfg(feature = "rocksdb")]
    for (ribbon, name) in [(false, "RocksDB Bloom"), (true, "RocksDB Ribbon")] {
        for bits in [8.0, 10.0, 12.0, 16.0] {
            let build = move |keys: &[u64]| {
                Ok(Box::new(rocksdb::Rocks::build(ribbon, bits, keys)?) as Box<dyn Filter>)
            };
            add(format!("{name} {bits}"), Box::new(build));
        }
    }
    for bits in [8, 10, 12, 16] {
        add(
            format!("fastbloom {bits}"),
            Box::new(move |keys| Ok(Box::new(others::Fastbloom::build(f64::from(bits), keys)))),
        );
    }
    for bits in [8, 10, 12, 16] {
        add(format!("sbbf-rs {bits}"), Box::new(move |keys| Ok(Box::new(others::Sbbf::build(bits, keys)))));
    }
    add("xorf BinaryFuse 8".to_owned(), Box::new(|keys| Ok(Box::new(others::Fuse8::build(keys)?))));
    add("xorf BinaryFuse 16".to_owned(), Box::new(|keys| Ok(Box::new(others::Fuse16::build(keys)?))));
    all
}

/// As a table.
pub fn rows(results: &[FilterResult]) -> Vec<Vec<String>> {
    let head = ["filter", "keys", "bits/key", "false positives", "probe ns", "batched ns", "build ns/key"];
    let row = |one: &FilterResult| {
        vec![
            one.name.clone(),
            count(one.keys as f64),
            number(one.bits_per_key),
            format!("{} %", number(100.0 * one.fpr)),
            number(one.probe_ns),
            one.batched_ns.map_or("–".to_owned(), number),
            number(one.build_ns),
        ]
    };
    std::iter::once(head.map(str::to_owned).to_vec()).chain(results.iter().map(row)).collect()
}
