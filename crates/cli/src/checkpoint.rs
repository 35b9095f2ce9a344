//! `sidebloom checkpoint`: a copy of the current store.

use crate::context::{Context, Failure, Outcome};
use crate::progress;
use sidebloom::show;
use std::io::Write;
use std::path::PathBuf;

/// Make a copy of the store that shares its segments (hard links)
///
/// The copy is a separate store: writes to one never show in the other. DEST must not exist. On another file
/// system, where hard links are impossible, the segments are copied. Another process may write the store: the
/// copy has everything written before the command, and perhaps more, whole batches in their order.
#[derive(clap::Args)]
pub struct Args {
    /// Directory to create
    dest: PathBuf,
}

#[derive(serde::Serialize)]
struct Report {
    checkpoint: String,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let dir = cx.local_db()?;
        let db = cx.opening(|| cx.options().follow(true).open(dir))?;
        let bar = progress::work_bar("copying");
        db.checkpoint_with(&self.dest, |so_far| progress::show(&bar, so_far))?;
        bar.finish_and_clear();
        let report = Report { checkpoint: self.dest.display().to_string() };
        cx.report(&report, |out| Ok(writeln!(out, "checkpoint at {}", show::escaped(&report.checkpoint))?))?;
        Ok(Outcome::Found)
    }
}
