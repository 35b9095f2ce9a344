//! `sidebloom filter check`: prints the lines that may be in a filter.

use super::sift::Sift;
use crate::context::{Context, Failure, Outcome};
use std::path::PathBuf;

/// Print the lines that may be in a filter
///
/// Exit codes follow grep: 0 if lines were printed (or counted), 1 if none were, 2 on error. With --json, each line is an object with
/// `key`, or `key_hex` if it is not UTF-8.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    #[command(flatten)]
    sift: Sift,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let filter = sidebloom::read_filter(&self.filter)?;
        self.sift.run(cx, |lines| Ok(filter.contains_many(lines)))
    }
}
