//! `sidebloom guard reconcile`: recounts all keys and reports the differences.

use super::{refresh, source};
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::guard::Guard;
use std::io::Write;
use std::path::PathBuf;

/// Recount all rows, as `refresh` does, and report how guard and database differed
///
/// Exits 1 when keys were missing from the guard: it denied keys that exist, so some writer bypasses it.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    #[command(flatten)]
    source: source::Named,
}

#[derive(serde::Serialize)]
struct Report {
    missing: u64,
    surplus: u64,
    miscounted: u64,
    #[serde(flatten)]
    refresh: refresh::Report,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let guard = cx.opening(|| Guard::open(&self.dir))?;
        let reconciled = guard.reconcile(&mut self.source.open("reading keys")?)?;
        let report = Report {
            missing: reconciled.missing,
            surplus: reconciled.surplus,
            miscounted: reconciled.miscounted,
            refresh: refresh::Report::new(&reconciled.refresh),
        };
        cx.report(&report, |out| report.print(out))?;
        Ok(Outcome::found(report.missing == 0))
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let [missing, surplus, miscounted] = [self.missing, self.surplus, self.miscounted].map(human::count);
        writeln!(out, "missing    {missing} keys that are in the database but were not in the guard")?;
        writeln!(out, "surplus    {surplus} keys that were in the guard but are not in the database")?;
        writeln!(out, "miscounted {miscounted} keys with a wrong number of rows")?;
        self.refresh.print(out)
    }
}
