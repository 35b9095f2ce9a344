//! `sidebloom guard refresh`: recounts all keys.

use super::source;
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bits};
use sidebloom::FilterPolicy;
use sidebloom::guard::{GuardOptions, RefreshReport};
use std::io::Write;
use std::path::PathBuf;

/// Recount all rows of the database
///
/// Builds the new keys next to the old ones and replaces them atomically at the end; after an error the guard
/// is unchanged. No writer may change the database during this: stop the writers, or let the process that
/// uses the guard refresh it (Guard::refresh of the library runs concurrently with its writers).
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    #[command(flatten)]
    source: source::Named,
    /// Filter bits per key from now on [default: unchanged]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

/// The result of a refresh.
#[derive(serde::Serialize)]
pub struct Report {
    rows: u64,
    keys: u64,
    seconds: f64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let mut options = GuardOptions::new();
        if let Some(bits) = self.bits_per_key {
            options = options.filter_policy(FilterPolicy::bits_per_key(bits));
        }
        let guard = cx.opening(|| options.clone().open(&self.dir))?;
        let report = Report::new(&guard.refresh(&mut self.source.open("reading keys")?)?);
        cx.report(&report, |out| report.print(out))?;
        Ok(Outcome::Found)
    }
}

impl Report {
    pub fn new(refresh: &RefreshReport) -> Self {
        Report { rows: refresh.rows, keys: refresh.keys, seconds: refresh.seconds }
    }

    pub fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let [rows, keys] = [self.rows, self.keys].map(human::count);
        Ok(writeln!(out, "{rows} rows, {keys} keys, in {:.1} s", self.seconds)?)
    }
}
