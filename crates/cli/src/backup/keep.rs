//! `sidebloom backup keep`: removes old backups.

use super::open;
use super::report::RemovedReport;
use crate::context::{Context, Failure, Outcome};
use std::path::PathBuf;

/// Remove all but the newest backups, and the files that only those used
///
/// In an object store, such files stay until they are a day old: a backup that is being made may need them.
#[derive(clap::Args)]
pub struct Args {
    /// Directory or URL of the backups
    target: PathBuf,
    /// How many to keep
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let repository = open(&self.target)?;
        let removed = RemovedReport::of(cx.opening(|| repository.keep(self.count))?);
        cx.report(&removed, |out| removed.print(out))?;
        Ok(Outcome::Found)
    }
}
