//! `sidebloom guard build`: a guard of all keys.

use super::source;
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bits};
use sidebloom::FilterPolicy;
use sidebloom::guard::{Canonical, GuardOptions, HashWidth};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Build a guard of all keys of a database, or of lines
///
/// The directory must be missing or empty. Prints rows, distinct keys, seconds, when two keys count as one, and bytes in memory and on disk.
#[derive(clap::Args)]
pub struct Args {
    /// The directory to create
    dir: PathBuf,
    #[command(flatten)]
    source: source::Named,
    /// When two keys count as one: exact, or with commas between them fold (letter case and Unicode spelling do not matter), pad (spaces
    /// at the end do not), any (with fold: keys that are not UTF-8 or have a NUL count as one, instead of being refused), integer or uuid (all its spellings are one). At least as coarse as the database's own equality, or the build is
    /// refused [default: as the column's type and collation say; exact for lines]
    #[arg(long, value_name = "KEYS")]
    keys: Option<Canonical>,
    /// 8-byte hashes instead of 16: half the disk space. For keys that only the database's own deletions remove: who may remove keys
    /// that are not there could, with billions of attempts, hit one that is
    #[arg(long)]
    narrow: bool,
    /// Filter bits of a key: memory against the share of missing keys that get through [default: 9]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

#[derive(serde::Serialize)]
struct Report {
    rows: u64,
    keys: u64,
    /// When two keys count as one.
    canonical: String,
    seconds: f64,
    keys_per_second: f64,
    filter_bytes: u64,
    disk_bytes: u64,
    expected_fpr: f64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let started = Instant::now();
        let mut options = GuardOptions::new();
        if let Some(keys) = self.keys {
            options = options.canonical(keys);
        }
        if self.narrow {
            options = options.hash_width(HashWidth::Bits64);
        }
        if let Some(bits) = self.bits_per_key {
            options = options.filter_policy(FilterPolicy::bits_per_key(bits));
        }
        let guard = options.build_from(&self.dir, &mut self.source.open("reading keys")?)?;
        let seconds = started.elapsed().as_secs_f64();
        let stats = guard.stats();
        let report = Report {
            rows: stats.rows,
            keys: stats.keys,
            canonical: guard.canonical().to_string(),
            seconds,
            keys_per_second: stats.rows as f64 / seconds,
            filter_bytes: stats.filter_bytes,
            disk_bytes: stats.disk_bytes,
            expected_fpr: stats.expected_fpr,
        };
        cx.report(&report, |out| report.print(out))?;
        Ok(Outcome::Found)
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let [rows, keys, rate] = [self.rows, self.keys, self.keys_per_second as u64].map(human::count);
        writeln!(out, "{rows} rows, {keys} keys, in {:.1} s ({rate} rows/s)", self.seconds)?;
        writeln!(out, "keys are {}", self.canonical)?;
        let [memory, disk] = [self.filter_bytes, self.disk_bytes].map(|bytes| human::bytes(bytes as f64));
        let passed = human::percent(self.expected_fpr, 1.0);
        Ok(writeln!(out, "{memory} in memory, {disk} on disk; {passed} of the missing keys get through")?)
    }
}
