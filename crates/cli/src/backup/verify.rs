//! `sidebloom backup verify`: reads every file of backups.

use super::open;
use super::report::with_bar;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::{Progress, show};
use std::io::Write;
use std::path::PathBuf;

/// Check every file of a backup, or of all, against its SHA-256
///
/// Prints one line per problem and exits 2 if there is one. Exits 1 if there is no backup to check.
#[derive(clap::Args)]
pub struct Args {
    /// Directory or URL of the backups
    target: PathBuf,
    /// Only the backup with this number
    number: Option<u64>,
}

#[derive(serde::Serialize)]
struct Report {
    ok: bool,
    backups: u64,
    files: u64,
    bytes: u64,
    problems: Vec<String>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let repository = open(&self.target)?;
        let verify =
            |progress: &dyn Fn(&Progress)| cx.opening(|| repository.verify_with(self.number, progress));
        let found = with_bar("verifying", verify)?;
        let report = Report {
            ok: found.is_ok() && found.backups > 0,
            backups: found.backups,
            files: found.files,
            bytes: found.bytes,
            problems: found.problems.iter().map(ToString::to_string).collect(),
        };
        cx.report(&report, |out| report.print(out))?;
        match report.problems.len() {
            0 => Ok(Outcome::found(found.backups > 0)),
            1 => Err(Failure::message("a backup is damaged: 1 problem found")),
            n => Err(Failure::message(format!("backups are damaged: {n} problems found"))),
        }
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        self.problems.iter().try_for_each(|problem| writeln!(out, "{}", show::escaped(problem)))?;
        if self.backups == 0 && self.problems.is_empty() {
            return Ok(writeln!(out, "there is no backup")?);
        }
        let [backups, files] = [self.backups, self.files].map(human::count);
        let bytes = human::bytes(self.bytes as f64);
        let verdict = if self.ok { "ok" } else { "DAMAGED" };
        Ok(writeln!(out, "{verdict}: {backups} backups, {files} files, {bytes}")?)
    }
}
