//! `sidebloom guard reconcile`: all keys anew, and by how much they had come apart.

use super::{refresh, source};
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::guard::Guard;
use std::io::Write;
use std::path::PathBuf;

/// Count all rows anew, as `refresh` does, and say by how much the guard and the database had come apart
///
/// Exits 1 when keys were missing from the guard: it has said no to keys that exist, so a writer goes around it.
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
        let guard = Guard::open(&self.dir)?;
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
        writeln!(out, "missing    {missing} keys that the database has and the guard denied")?;
        writeln!(out, "surplus    {surplus} keys that the guard had and the database does not")?;
        writeln!(out, "miscounted {miscounted} keys with another number of rows")?;
        self.refresh.print(out)
    }
}
