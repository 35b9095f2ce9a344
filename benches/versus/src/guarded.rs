//! `versus guard`: what a guard in front of RocksDB saves, compared with RocksDB's own Bloom filter.

use crate::engines::rocksdb::filter_bytes as rocks_filter_bytes;
use crate::error::Result;
use crate::format::{bytes, nanos, number, shown};
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64, ValueGenerator};
use crate::output::refuse_existing;
use crate::table::{aligned, headed};
use rocksdb::{BlockBasedOptions, Cache, DB, DBCompressionType, Options, WaitForCompactOptions};
use serde::Serialize;
use sidebloom::guard::GuardOptions;
use sidebloom_rocksdb::GuardedRocks;
use std::path::{Path, PathBuf};
use std::time::Instant;

const KEY_BYTES: usize = 24;
const VALUE_BYTES: usize = 100;
const SEED: u64 = 1;

/// Measure a guard in front of RocksDB: a table on the terminal, all figures in DIR/guard.json
#[derive(clap::Args)]
pub struct Args {
    /// Directory for the figures, and for the databases while measuring
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Keys in the database
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1000..=1_000_000_000))]
    num: u64,
    /// Lookups per round
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1000..))]
    reads: u64,
    /// Percentage of lookups for missing keys
    #[arg(long, value_name = "PERCENT", default_value_t = 95, value_parser = clap::value_parser!(u64).range(0..=100))]
    missing: u64,
    /// Rounds; each makes the same lookups in every database, in turn
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
}

/// The figures of one lookup method.
#[derive(Debug, Serialize)]
struct LookupFigures {
    name: &'static str,
    /// Mean time of a lookup; the median of the rounds.
    mean_ns: f64,
    /// Mean time of a lookup in each round.
    rounds_ns: Vec<f64>,
    /// Calls to the database per missing key.
    calls_per_missing: f64,
    /// Size of the filters.
    filter_bytes: Option<u64>,
}

fn options(bloom: bool) -> Options {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_hyper_clock_cache(256 << 20, 0));
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_max_open_files(-1);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(8 << 20);
    if bloom {
        table.set_bloom_filter(10.0, false);
        options.set_memtable_whole_key_filtering(true);
        options.set_memtable_prefix_bloom_ratio(0.1);
    }
    options.set_block_based_table_factory(&table);
    options
}

fn load(dir: &Path, bloom: bool, num: u64) -> Result<DB> {
    let db = DB::open(&options(bloom), dir)?;
    let (keys, values) = (KeyGenerator::new(KEY_BYTES, SEED), ValueGenerator::new(VALUE_BYTES, SEED));
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for index in 0..num {
        keys.write(keys.rank(index, KeyPresence::Present), KeyPresence::Present, &mut key);
        values.write(index, 0, &mut value);
        db.put(&key, &value)?;
    }
    db.flush()?;
    db.wait_for_compact(&WaitForCompactOptions::default())?;
    Ok(db)
}

/// The lookups of a round: each key, and whether it is present.
fn lookups(args: &Args, round: u64) -> Vec<(Vec<u8>, bool)> {
    let keys = KeyGenerator::new(KEY_BYTES, SEED);
    let mut rng = SplitMix64::new(round);
    let lookup = |_| {
        let present = rng.below(100) >= args.missing;
        let presence = if present { KeyPresence::Present } else { KeyPresence::Missing };
        let mut key = Vec::new();
        keys.write(keys.rank(rng.below(args.num), presence), presence, &mut key);
        (key, present)
    };
    (0..args.reads).map(lookup).collect()
}

/// Mean nanoseconds of a lookup. A wrong answer is an error.
fn look_up(lookups: &[(Vec<u8>, bool)], get: &dyn Fn(&[u8]) -> Result<bool>) -> Result<f64> {
    let started = Instant::now();
    for (key, present) in lookups {
        if get(key)? != *present {
            return Err(format!("WRONG ANSWER for {}", key.escape_ascii()).into());
        }
    }
    Ok(started.elapsed().as_nanos() as f64 / lookups.len() as f64)
}

type GetFn<'a> = Box<dyn Fn(&[u8]) -> Result<bool> + 'a>;

fn print(figures: &[LookupFigures], keys: u64) {
    let head = ["", "mean", "speed", "database calls / missing key", "filters", "bytes / key"];
    let base = figures.first().map_or(f64::NAN, |figures| figures.mean_ns);
    let row = |of: &LookupFigures| {
        let filter_bytes = of.filter_bytes.map(|n| n as f64);
        vec![
            of.name.to_owned(),
            nanos(of.mean_ns),
            format!("{}×", number(base / of.mean_ns)),
            number(of.calls_per_missing),
            shown(filter_bytes, bytes),
            shown(filter_bytes.map(|n| n / keys as f64), number),
        ]
    };
    print!("{}", aligned(&headed(head, figures.iter().map(row))));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Args {
    /// Measures, prints and writes the figures.
    pub fn run(self) -> Result<()> {
        std::fs::create_dir_all(&self.out)?;
        let at = |name: &str| self.out.join(name);
        let stores = ["plain", "bloom", "guarded", "guard"];
        refuse_existing(stores.into_iter().map(at), "a new directory to --out")?;
        eprintln!("loading three databases of {} keys", self.num);
        let plain = load(&at("plain"), false, self.num)?;
        let bloom = load(&at("bloom"), true, self.num)?;
        let database = load(&at("guarded"), false, self.num)?;
        let started = Instant::now();
        let guarded = GuardedRocks::new(database, &at("guard"), GuardOptions::new())?;
        let built = started.elapsed();
        let ways: [(&str, GetFn<'_>); 3] = [
            ("RocksDB", Box::new(|key| Ok(plain.get_pinned(key)?.is_some()))),
            ("RocksDB, Bloom 10 bits", Box::new(|key| Ok(bloom.get_pinned(key)?.is_some()))),
            ("RocksDB, guarded", Box::new(|key| Ok(guarded.get(key)?.is_some()))),
        ];
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for round in 0..=self.rounds {
            let lookups = lookups(&self, round);
            for ((_, get), times) in ways.iter().zip(&mut rounds) {
                let ns = look_up(&lookups, get)?;
                if round > 0 {
                    times.push(ns); // Round 0 fills the caches.
                }
            }
        }
        let stats = guarded.guard().stats();
        let missing = stats.absent + stats.false_positives;
        let calls = [1.0, 1.0, stats.false_positives as f64 / missing.max(1) as f64];
        let filters = [None, rocks_filter_bytes(&bloom)?, Some(stats.filter_bytes)];
        let figures: Vec<LookupFigures> = ways
            .iter()
            .zip(rounds)
            .zip(calls.into_iter().zip(filters))
            .map(|(((name, _), rounds_ns), (calls_per_missing, filter_bytes))| LookupFigures {
                name,
                mean_ns: median(rounds_ns.clone()),
                rounds_ns,
                calls_per_missing,
                filter_bytes,
            })
            .collect();
        println!(
            "{} keys; {} % of {} lookups per round are for missing keys; everything in memory; guard built in {:.2} s",
            self.num,
            self.missing,
            self.reads,
            built.as_secs_f64()
        );
        print(&figures, self.num);
        let json = serde_json::json!({
            "keys": self.num, "reads": self.reads, "missing_percent": self.missing,
            "guard_build_seconds": built.as_secs_f64(), "ways": figures,
        });
        std::fs::write(at("guard.json"), serde_json::to_string_pretty(&json)?)?;
        drop(ways);
        drop((plain, bloom, guarded));
        for name in stores {
            std::fs::remove_dir_all(at(name))?;
        }
        Ok(())
    }
}
