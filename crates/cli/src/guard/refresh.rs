//! `sidebloom guard refresh`: all keys anew.

use super::source;
use crate::context::{Context, Failure, Outcome};
use crate::human::{self, parse_bits};
use sidebloom::FilterPolicy;
use sidebloom::guard::{GuardOptions, RefreshReport};
use std::io::Write;
use std::path::PathBuf;

/// Count all rows of the database anew
///
/// The new keys are built beside the old ones and take their place at once at the end; on an error the guard stays as it was. No
/// writer may change the database and go around this command meanwhile: stop those that use the guard, or let them refresh it
/// themselves (the library's Guard::refresh runs beside its writers).
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    #[command(flatten)]
    source: source::Named,
    /// Filter bits of a key from now on [default: as before]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

/// What a refresh has done.
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
        let guard = options.open(&self.dir)?;
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
