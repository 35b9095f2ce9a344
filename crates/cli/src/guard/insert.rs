//! `sidebloom guard insert`: keys of rows that are about to come.

use super::keys;
use crate::context::{Context, Failure, Outcome};
use crate::human;
use sidebloom::guard::Changes;
use std::io::Write;
use std::path::PathBuf;

/// Insert keys: their rows are about to come
///
/// Durable when it returns: commit the rows to the database after that, never before. A key that is given twice counts for two rows.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    #[command(flatten)]
    keys: keys::Keys,
}

#[derive(serde::Serialize)]
struct Report {
    inserted: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let guard = keys::open(&self.dir)?;
        let inserted = self.keys.in_batches("inserting", &guard, |changes: &mut Changes, key| {
            changes.insert(key);
        })?;
        cx.report(&Report { inserted }, |out| Ok(writeln!(out, "inserted {}", human::count(inserted))?))?;
        Ok(Outcome::Found)
    }
}
