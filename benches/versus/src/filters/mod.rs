//! `versus filters`: filters without a store. All of them get the same random 64-bit keys as hashes.

mod contestants;
mod filter;
mod measure;
mod other_crates;
mod ribbon;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sidebloom_filters;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::format::{self, count, number, percent, shown};
use crate::machine::Machine;
use crate::results::{self, FILTERS_FILE, FilterResult, FiltersRecord};
use crate::table::{aligned, headed};
use contestants::contestants;
use measure::Effort;
use std::path::PathBuf;

/// Upper limits of the untimed queries for absent keys: enough for 16 lanes, which need 73 million, and for
/// seconds instead of minutes.
const EXTRA_QUERIES: u64 = 200_000_000;
const QUICK_EXTRA_QUERIES: u64 = 10_000_000;

/// Measure filters without a store: a table on the terminal, all figures in DIR/filters.json
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the figures
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keys in a filter, separated by commas; by default, one size that fits in L2 and one that does not
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [100_000, 10_000_000], value_parser = clap::value_parser!(u64).range(1000..=2_000_000_000))]
    keys: Vec<u64>,
    /// Memory to fill with copies of the largest filter, like the filters of a large store; each query picks
    /// a random copy
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    crowd_mib: u64,
    /// Timed queries for absent keys, and as many for present keys
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    queries: u64,
    /// Fewer keys and queries: seconds instead of minutes
    #[arg(long)]
    quick: bool,
}

impl Args {
    /// Measures all filters.
    pub fn run(mut self) -> Result<()> {
        if self.quick {
            self.keys = vec![20_000, 1_000_000];
            self.queries = 500_000;
            self.crowd_mib = self.crowd_mib.min(128);
        }
        let extra_queries = if self.quick { QUICK_EXTRA_QUERIES } else { EXTRA_QUERIES };
        let effort = Effort { queries: self.queries, extra_queries, crowd_bytes: self.crowd_mib << 20 };
        let largest = self.keys.iter().copied().max();
        std::fs::create_dir_all(&self.out)?;
        let mut results = Vec::new();
        for &keys in &self.keys {
            let first = results.len();
            for (name, build) in contestants() {
                eprintln!("{name}, {} keys", count(keys as f64));
                results.push(effort.measure(name, keys, &build, largest == Some(keys))?);
            }
            println!("{}", aligned(&rows(&results[first..])));
        }
        let file = self.out.join(FILTERS_FILE);
        let (date, machine) = (format::now(), Machine::here(&self.out));
        let record = FiltersRecord { date, machine, crowd_bytes: effort.crowd_bytes, results };
        results::write(&file, &record)?;
        println!("all figures: {}", file.display());
        Ok(())
    }
}

/// The rows of a table, its header first.
pub fn rows(results: &[FilterResult]) -> Vec<Vec<String>> {
    let crowd = results.iter().any(|one| one.crowded_ns.is_some());
    let mut head = vec![
        "filter",
        "keys",
        "bits/key",
        "false positives",
        "÷ bound",
        "probe ns",
        "batched ns",
        "hit ns",
        "batched hit ns",
        "build ns/key",
    ];
    if crowd {
        head.extend(["probe ns, crowd", "batched ns, crowd"]);
    }
    let show = |figure| shown(figure, number);
    let row = |one: &FilterResult| {
        let mut row = vec![
            one.name.clone(),
            count(one.keys as f64),
            number(one.bits_per_key),
            percent(one.fpr),
            show(one.over_bound),
            number(one.probe_ns),
            show(one.batched_ns),
            show(one.hit_ns),
            show(one.batched_hit_ns),
            number(one.build_ns),
        ];
        if crowd {
            row.extend([show(one.crowded_ns), show(one.crowded_batched_ns)]);
        }
        row
    };
    headed(head, results.iter().map(row))
}
