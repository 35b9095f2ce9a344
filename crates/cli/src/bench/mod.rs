//! `sidebloom bench`: the workloads of db_bench and YCSB on this store.

mod drive;
mod keys;
mod reads;
mod report;
mod store;
mod workload;
mod writes;
mod ycsb;
mod zipf;

use super::context::{Context, Failure, Outcome};
use super::human::parse_bytes;
use super::progress;
use super::rebuild_filters::parse_bits;
use super::system::{self, DiskMeter};
use drive::Driver;
pub use keys::mix;
use keys::{KeySpace, Kind, MIN_KEY_BYTES, Values};
use report::{Counters, Observed, Report};
use std::time::Instant;
use store::Store;
use workload::{Amount, Workload};

/// Measure workloads of db_bench and YCSB
///
/// Runs the workloads in the order given, on a store in a temporary directory (or in the new directory that --db names, which
/// stays). If the first one is not a fill, fillrandom comes before it; a second fill begins with an empty store.
///
/// Throughput and mean are those of the whole run. Percentiles are of single calls (16 keys for multireadrandom, --batch puts for
/// fills); runs of 100,000 calls a thread and more time 1 call in 16, since reading the clock costs about 25 ns. Disk reads are
/// the device's, for the whole machine (/proc/diskstats): use a quiet one; disk bytes are this process's (/proc/self/io). False
/// positives are a share of the filters asked for absent keys.
#[derive(clap::Args)]
pub struct Args {
    /// Workloads, separated by commas or blanks
    #[arg(value_enum, value_delimiter = ',',
          default_values = ["fillrandom", "readrandom", "readmissing", "multireadrandom", "seekrandom", "scan"])]
    workloads: Vec<Workload>,
    /// Keys to load
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    num: u64,
    /// Operations of each workload that is not a fill [default: --num]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    reads: Option<u64>,
    /// Length of a key
    #[arg(long, value_name = "BYTES", default_value_t = 24, value_parser = clap::value_parser!(u64).range(MIN_KEY_BYTES as u64..=65536))]
    key_bytes: u64,
    /// Length of a value
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=64 << 20))]
    value_bytes: u64,
    /// Threads that call
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Puts in a write of fillseq, fillrandom and overwrite
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: u64,
    /// Block cache, in bytes or with K, M or G
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes)]
    cache_bytes: u64,
    /// Before each workload that only reads, reopen the store, warm its filters and drop the page cache
    #[arg(long)]
    cold: bool,
    /// Whether filters are written and asked
    #[arg(long, value_enum, default_value_t = Filters::On)]
    filters: Filters,
    /// Bits of a filter for each key [default: the library's policy]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
    /// How blocks are compressed
    #[arg(long, value_enum, default_value_t = CompressionName::Lz4)]
    compression: CompressionName,
    /// Of keys, values and their order
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run on the store that is there, loaded before with the same --num, --key-bytes and --seed
    #[arg(long)]
    use_existing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Filters {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CompressionName {
    None,
    Lz4,
    Zstd,
}

impl Args {
    pub fn run(mut self, cx: &Context) -> Result<Outcome, Failure> {
        let filled = self.use_existing || self.workloads.first().is_some_and(|first| first.is_fill());
        if !filled {
            self.workloads.insert(0, Workload::FillRandom);
        }
        let keys = KeySpace::new(self.num, self.key_bytes as usize, self.seed);
        let values = Values::new(self.value_bytes as usize, self.seed);
        let mut store = Store::new(cx, &self)?;
        if self.use_existing {
            check_existing(&mut store, &keys)?;
        }
        report::print_head(cx)?;
        for (i, &workload) in self.workloads.iter().enumerate() {
            if workload.is_fill() && i > 0 && !self.use_existing {
                store.clear()?;
            }
            let report = self.measure(workload, &mut store, &keys, &values)?;
            report.print(cx)?;
            cx.flush()?;
        }
        Ok(Outcome::Found)
    }

    fn measure(
        &self,
        workload: Workload,
        store: &mut Store<'_>,
        keys: &KeySpace,
        values: &Values,
    ) -> Result<Report, Failure> {
        let amount = Amount { reads: self.reads.unwrap_or(self.num), batch: self.batch };
        let page_cache = match self.cold && !workload.writes() {
            true => Some(store.make_cold()?),
            false => None,
        };
        let db = store.db()?;
        let meter = DiskMeter::new(store.path());
        let bar = progress::bar(&workload.name(), workload.calls(self.num, amount));
        let driver =
            Driver { db: &db, keys, values, threads: self.threads, seed: self.seed, bar: bar.clone() };
        system::reset_peak_memory();
        let before = (Counters::new(&db), meter.read());
        let run = workload.run(&driver, amount)?;
        let disk = meter.read().since(before.1);
        bar.set_message("settling");
        let settling = Instant::now();
        if workload.writes() {
            db.flush()?;
            db.wait_for_compaction()?;
            db.warm()?;
        }
        let settle = workload.writes().then(|| settling.elapsed());
        bar.finish_and_clear();
        let observed = Observed {
            run,
            counters: Counters::new(&db).since(&before.0),
            disk,
            settle,
            page_cache,
            expected_false_positives: db.stats().expected_false_positives(),
        };
        Ok(Report::new(workload, self.threads, observed))
    }
}

/// The first and the last key tell whether the store was loaded with the same options.
fn check_existing(store: &mut Store<'_>, keys: &KeySpace) -> Result<(), Failure> {
    let db = store.db()?;
    let mut key = Vec::new();
    for index in [0, keys.num() - 1] {
        keys.write(index, Kind::Present, &mut key);
        if !db.contains_key(&key)? {
            let path = store.path().display();
            return Err(Failure::message(format!(
                "{path} does not hold this benchmark's keys: load it with `bench fillrandom` and the same --num, --key-bytes and --seed"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        assert_eq!(
            [parse_bytes("4096"), parse_bytes("64k"), parse_bytes("2G")],
            [Ok(4096), Ok(65536), Ok(2 << 30)]
        );
        for bad in ["", "M", "1T", "-1", "99999999999G"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
