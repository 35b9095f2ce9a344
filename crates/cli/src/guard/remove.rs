//! `sidebloom guard remove`: removes keys of deleted rows.

use super::keys;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::guard::Changes;
use std::io::Write;
use std::path::PathBuf;

/// Remove keys whose rows were deleted
///
/// Run this only after the database has committed the deletion, and only for rows that existed. A key stays
/// until its last row is removed. Exits 1 when a key was not found; the others are still removed.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    #[command(flatten)]
    keys: keys::Keys,
    #[command(flatten)]
    end: keys::LineEnd,
}

#[derive(serde::Serialize)]
struct Report {
    removed: u64,
    not_found: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let guard = keys::open(cx, &self.dir)?;
        let given = self.keys.in_batches("removing", &guard, &self.end, |changes: &mut Changes, key| {
            changes.remove(key);
        })?;
        let not_found = guard.stats().unknown_removals;
        let report = Report { removed: given - not_found, not_found };
        cx.report(&report, |out| {
            let [removed, not_found] = [report.removed, report.not_found].map(human::count);
            Ok(writeln!(out, "removed {removed}, not found {not_found}")?)
        })?;
        Ok(Outcome::found(not_found == 0))
    }
}
