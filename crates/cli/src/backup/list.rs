//! `sidebloom backup list`: the backups of a repository.

use super::open;
use super::report::Report;
use crate::context::{Context, Failure, Outcome};
use sidebloom::show;
use std::path::PathBuf;

/// List backups, oldest first
///
/// Exits 1 if there are none, and 2 if one is damaged; the others are listed even then.
#[derive(clap::Args)]
pub struct Args {
    /// Directory or URL of the backups
    target: PathBuf,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let listing = open(&self.target)?.list()?;
        for backup in listing.backups.iter().map(Report::of) {
            cx.report(&backup, |out| backup.print(out))?;
        }
        match &*listing.problems {
            [] => Ok(Outcome::found(!listing.backups.is_empty())),
            problems => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Err(Failure::message(show::escaped(&problems.join("; ")).to_string()))
            }
        }
    }
}
