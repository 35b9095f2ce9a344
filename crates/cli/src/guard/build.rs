//! `sidebloom guard build`: builds a guard of all keys.

use super::source;
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bits};
use sidebloom::FilterPolicy;
use sidebloom::guard::{Canonical, GuardOptions, HashWidth};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Build a guard of all keys of a database or file
///
/// The directory must be missing or empty. Prints rows, distinct keys, seconds, the rule by which keys are
/// equal, and bytes in memory and on disk.
#[derive(clap::Args)]
pub struct Args {
    /// The directory to create
    dir: PathBuf,
    #[command(flatten)]
    source: source::Named,
    /// When two keys are equal: exact, integer or uuid (all spellings of a value are equal), or a
    /// comma-separated list of fold (ignore letter case and Unicode spelling), pad (ignore trailing spaces)
    /// and any (with fold: keys that are not UTF-8 or contain NUL are equal, instead of refused). Must be at
    /// least as coarse as the database's own equality [default: from the column's type and collation; exact
    /// for lines]
    #[arg(long, value_name = "KEYS")]
    keys: Option<Canonical>,
    /// Use 8-byte hashes instead of 16-byte ones: half the disk space. Only if keys are removed solely for
    /// deleted rows: someone who can remove arbitrary keys could hit a present key after billions of attempts
    #[arg(long)]
    narrow: bool,
    /// Filter bits per key: more memory, fewer absent keys that pass [default: 9]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

#[derive(serde::Serialize)]
struct Report {
    rows: u64,
    keys: u64,
    /// The rule by which keys are equal.
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
        let mut source = self.source.open("reading keys")?;
        let new = create_missing(&self.dir);
        let guard = cx.opening(|| options.clone().build_from(&self.dir, &mut source)).inspect_err(|_| {
            // Removed only while empty: somebody else may have put something there.
            let _ = new.iter().rev().try_for_each(std::fs::remove_dir);
        })?;
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

/// Creates a directory and its missing ancestors. Returns those it created, the outermost first. Ignores
/// errors: the build needs the directory too and reports them.
fn create_missing(dir: &Path) -> Vec<&Path> {
    let mut dirs: Vec<&Path> = dir.ancestors().filter(|dir| !dir.as_os_str().is_empty()).collect();
    dirs.reverse();
    dirs.retain(|dir| std::fs::create_dir(dir).is_ok());
    dirs
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let [rows, keys, rate] = [self.rows, self.keys, self.keys_per_second as u64].map(human::count);
        writeln!(out, "{rows} rows, {keys} keys, in {:.1} s ({rate} rows/s)", self.seconds)?;
        writeln!(out, "keys are {}", self.canonical)?;
        let [memory, disk] = [self.filter_bytes, self.disk_bytes].map(|bytes| human::bytes(bytes as f64));
        let passed = human::percent(self.expected_fpr, 1.0);
        Ok(writeln!(out, "{memory} in memory, {disk} on disk; {passed} of absent keys pass")?)
    }
}
