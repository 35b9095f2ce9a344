//! `versus filters`: filters without a store. All of them get the same random 64-bit keys as hashes.

mod filter;
mod others;
mod ours;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use crate::error::Result;
use crate::format::{self, count, number};
use crate::keys::mix;
use crate::machine::Machine;
use crate::results::{self, FILTERS_FILE, FilterResult, FiltersRecord};
use crate::table;
use filter::{BATCH_KEYS, Filter};
use sidebloom::filter::{FilterSpec, Width};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

/// Each time is the best of this many, except that a build of more than `LONG_BUILD` is timed once.
const REPEATS: usize = 5;
const LONG_BUILD: Duration = Duration::from_millis(500);

/// Measure filters without a store: a table on the terminal, all figures in DIR/filters.json
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the figures
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keys in a filter, separated by commas; by default, one size that fits in L2 and one that does not
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [100_000, 10_000_000], value_parser = clap::value_parser!(u64).range(1000..=2_000_000_000))]
    keys: Vec<u64>,
    /// Memory to fill with copies of the largest filter, like the filters of a large store; each query goes to one of them
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    crowd_mib: u64,
    /// Queries for absent keys
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    queries: u64,
    /// Fewer keys and queries: seconds instead of minutes
    #[arg(long)]
    quick: bool,
}

type BuildFn = Box<dyn Fn(&[u64]) -> Result<Box<dyn Filter>>>;

impl Args {
    /// Measures all filters.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.keys = vec![20_000, 1_000_000];
            self.queries = 500_000;
            self.crowd_mib = self.crowd_mib.min(128);
        }
        let largest = self.keys.iter().copied().max();
        std::fs::create_dir_all(&self.out)?;
        let mut results = Vec::new();
        for &keys in &self.keys {
            let first = results.len();
            for (name, build) in contestants() {
                eprintln!("{name}, {} keys", count(keys as f64));
                results.push(self.measure(name, keys, &build, largest == Some(keys))?);
            }
            println!("{}", table::aligned(&rows(&results[first..])));
        }
        let file = self.out.join(FILTERS_FILE);
        let (date, machine) = (format::now(), Machine::here(&self.out));
        let crowd_bytes = self.crowd_mib << 20;
        results::write(&file, &FiltersRecord { date, machine, crowd_bytes, results })?;
        println!("all figures: {}", file.display());
        Ok(())
    }

    fn measure(&self, name: String, keys: u64, build: &BuildFn, crowd: bool) -> Result<FilterResult> {
        let present: Vec<u64> = (0..keys).map(|i| mix(2 * i)).collect();
        let absent: Vec<u64> = (0..self.queries).map(|i| mix(2 * i + 1)).collect();
        let mut begin = cpu();
        let mut filter = build(&present)?;
        let mut built = cpu() - begin;
        for _ in 1..REPEATS {
            if built > LONG_BUILD {
                break;
            }
            begin = cpu();
            filter = build(&present)?;
            built = built.min(cpu() - begin);
        }
        let build_ns = built.as_nanos() as f64 / keys as f64;
        if let Some(key) = present.iter().find(|&&key| !filter.may_contain(filter.prepared(key))) {
            return Err(format!(
                "WRONG ANSWER: {name} reports key {key:#x} as absent, but was built with it"
            )
            .into());
        }
        let prepared: Vec<u64> = absent.iter().map(|&key| filter.prepared(key)).collect();
        let (probe_ns, maybes) =
            fastest(prepared.len(), || prepared.iter().filter(|&&key| filter.may_contain(key)).count());
        let batched = filter.batched(&absent[..BATCH_KEYS], &prepared[..BATCH_KEYS]).is_some();
        let batched_ns =
            batched.then(|| fastest(prepared.len(), || filter.batched(&absent, &prepared).unwrap_or(0)).0);
        drop(present);
        let crowded = match crowd {
            true => self.in_a_crowd(filter.as_ref(), &absent, &prepared),
            false => (None, None),
        };
        Ok(FilterResult {
            name,
            keys,
            crowded_ns: crowded.0,
            crowded_batched_ns: crowded.1,
            bits_per_key: 8.0 * filter.bytes() as f64 / keys as f64,
            fpr: maybes as f64 / self.queries as f64,
            probe_ns,
            batched_ns,
            build_ns,
        })
    }

    /// Nanoseconds per query, single and batched, with copies of the filter filling `crowd_mib`. Each query or batch goes to a random copy.
    /// The copies give the same answers, but share no cache lines.
    fn in_a_crowd(
        &self,
        filter: &dyn Filter,
        absent: &[u64],
        prepared: &[u64],
    ) -> (Option<f64>, Option<f64>) {
        // A quarter is enough, because each query is many times slower.
        let quarter = (prepared.len() / 4).max(BATCH_KEYS);
        let (absent, prepared) = (&absent[..quarter], &prepared[..quarter]);
        let copies = (self.crowd_mib << 20).div_ceil(filter.bytes() as u64).max(1);
        let crowd: Vec<Box<dyn Filter>> = (0..copies).map(|_| filter.copy()).collect();
        let drawn = |n: usize| ((u128::from(mix(n as u64)) * u128::from(copies)) >> 64) as usize;
        let order: Vec<u32> = (0..prepared.len()).map(|n| drawn(n) as u32).collect();
        let single = || {
            let asked = prepared.iter().zip(&order);
            asked.filter(|&(&key, &copy)| crowd[copy as usize].may_contain(key)).count()
        };
        let batched = || -> Option<usize> {
            let batches = absent.chunks(BATCH_KEYS).zip(prepared.chunks(BATCH_KEYS)).zip(&order);
            batches.map(|((keys, prepared), &copy)| crowd[copy as usize].batched(keys, prepared)).sum()
        };
        let has_batches = filter.batched(&absent[..BATCH_KEYS], &prepared[..BATCH_KEYS]).is_some();
        let batched_ns = has_batches.then(|| fastest(prepared.len(), || batched().unwrap_or(0)).0);
        (Some(fastest(prepared.len(), single).0), batched_ns)
    }
}

/// CPU time of this thread, which excludes other processes. A filter never waits and uses no other thread.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The best time in nanoseconds per query, and the answer.
fn fastest(queries: usize, ask: impl Fn() -> usize) -> (f64, usize) {
    let time = || {
        let begin = cpu();
        let answer = black_box(ask());
        ((cpu() - begin).as_nanos() as f64 / queries as f64, answer)
    };
    (0..REPEATS).map(|_| time()).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 0))
}

fn contestants() -> Vec<(String, BuildFn)> {
    let mut all: Vec<(String, BuildFn)> = Vec::new();
    let mut add = |name: String, build: BuildFn| all.push((name, build));
    for width in Width::ALL {
        let spec = FilterSpec::Parity { width };
        add(
            format!("Parity {}", width.lanes()),
            Box::new(move |keys| Ok(Box::new(ours::SidebloomFilter::build(spec, keys)?))),
        );
    }
    for bits in [8.0, 10.0, 12.0, 16.0] {
        let spec = FilterSpec::BlockedBloom { bits_per_key: bits };
        add(
            format!("BlockedBloom {bits}"),
            Box::new(move |keys| Ok(Box::new(ours::SidebloomFilter::build(spec, keys)?))),
        );
    }
    #[cfg(feature = "rocksdb")]
    for (ribbon, name) in [(false, "RocksDB Bloom"), (true, "RocksDB Ribbon")] {
        for bits in [8.0, 10.0, 12.0, 16.0] {
            let build = move |keys: &[u64]| {
                Ok(Box::new(rocksdb::RocksFilter::build(ribbon, bits, keys)?) as Box<dyn Filter>)
            };
            add(format!("{name} {bits}"), Box::new(build));
        }
    }
    for bits in [8, 10, 12, 16] {
        add(
            format!("fastbloom {bits}"),
            Box::new(move |keys| Ok(Box::new(others::FastbloomFilter::build(f64::from(bits), keys)))),
        );
    }
    for bits in [8, 10, 12, 16] {
        add(
            format!("sbbf-rs {bits}"),
            Box::new(move |keys| Ok(Box::new(others::SbbfFilter::build(bits, keys)))),
        );
    }
    add("xorf BinaryFuse 8".to_owned(), Box::new(|keys| Ok(Box::new(others::Fuse8Filter::build(keys)?))));
    add("xorf BinaryFuse 16".to_owned(), Box::new(|keys| Ok(Box::new(others::Fuse16Filter::build(keys)?))));
    all
}

/// The rows of a table, its header first.
pub fn rows(results: &[FilterResult]) -> Vec<Vec<String>> {
    let crowd = results.iter().any(|one| one.crowded_ns.is_some());
    let mut head =
        vec!["filter", "keys", "bits/key", "false positives", "probe ns", "batched ns", "build ns/key"];
    if crowd {
        head.extend(["probe ns, crowd", "batched ns, crowd"]);
    }
    let show = |ns: Option<f64>| ns.map_or("–".to_owned(), number);
    let row = |one: &FilterResult| {
        let mut row = vec![
            one.name.clone(),
            count(one.keys as f64),
            number(one.bits_per_key),
            format!("{} %", number(100.0 * one.fpr)),
            number(one.probe_ns),
            show(one.batched_ns),
            number(one.build_ns),
        ];
        if crowd {
            row.extend([show(one.crowded_ns), show(one.crowded_batched_ns)]);
        }
        row
    };
    std::iter::once(head.into_iter().map(str::to_owned).collect()).chain(results.iter().map(row)).collect()
}
