//! `sidebloom guard backup`: a backup of a guard.

use crate::backup::{add, open};
use crate::context::{Context, Failure, Outcome};
use sidebloom::guard::GuardOptions;
use std::path::PathBuf;

/// Back up a guard beside the process that has it open
///
/// As `sidebloom backup` does for a store; `sidebloom backup list`, `verify` and `keep`, and `sidebloom
/// restore`, work on the backups of guards too. They contain the guard's secret key.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    /// Directory or URL of the backups
    target: PathBuf,
    /// Then remove all but the newest N backups, and the files that only those used
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let repository = open(&self.target)?;
        add(cx, &repository, self.keep, |progress| {
            repository.back_up_guard(&self.dir, GuardOptions::new(), progress)
        })
    }
}
