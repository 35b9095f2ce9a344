//! `sidebloom guard insert`: inserts keys of rows that are about to be committed.

use super::keys;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::guard::Changes;
use std::io::Write;
use std::path::PathBuf;

/// Insert keys whose rows are about to be committed
///
/// The keys are durable when this returns. Commit the rows to the database only then, never before. A key
/// given twice counts as two rows.
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
    inserted: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let guard = keys::open(cx, &self.dir)?;
        let inserted =
            self.keys.in_batches("inserting", &guard, &self.end, |changes: &mut Changes, key| {
                changes.insert(key);
            })?;
        cx.report(&Report { inserted }, |out| Ok(writeln!(out, "inserted {}", human::count(inserted))?))?;
        Ok(Outcome::Found)
    }
}
