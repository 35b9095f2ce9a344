//! `sidebloom restore`: a store or a guard from a backup.

use super::open;
use super::report::{Report as OfBackup, with_bar};
use crate::context::{Context, Failure, Outcome};
use sidebloom::{Progress, show};
use std::io::Write;
use std::path::PathBuf;

/// Restore a store or a guard from a backup into a new directory
///
/// Every file is checked against its SHA-256. Whatever interrupts this, an incomplete copy is never taken for
/// a store or a guard.
#[derive(clap::Args)]
pub struct Args {
    /// Directory or URL of the backups
    target: PathBuf,
    /// Directory to create
    dir: PathBuf,
    /// The backup with this number instead of the newest
    #[arg(long, value_name = "N")]
    number: Option<u64>,
}

#[derive(serde::Serialize)]
struct Report {
    restored: String,
    #[serde(flatten)]
    backup: OfBackup,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let repository = open(&self.target)?;
        let restore = |progress: &dyn Fn(&Progress)| {
            cx.opening(|| repository.restore_with(self.number, &self.dir, progress))
        };
        let backup = OfBackup::of(&with_bar("restoring", restore)?);
        let report = Report { restored: self.dir.display().to_string(), backup };
        cx.report(&report, |out| {
            writeln!(out, "restored {}", show::escaped(&report.restored))?;
            report.backup.print(out)
        })?;
        Ok(Outcome::Found)
    }
}
