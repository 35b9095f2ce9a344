//! `sidebloom filter add`: adds lines to a filter.

use super::files;
use super::input::InputLines;
use crate::context::{Context, Failure, Outcome};
use std::path::PathBuf;

/// Add lines to a filter (except a parity or a small filter, which are static)
///
/// The file is replaced once all lines are added. A line beyond the filter's capacity is an error and leaves
/// the file unchanged.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    /// The lines to add
    #[arg(default_value = "-")]
    lines: PathBuf,
    /// Lines end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
    /// Write the result to this file instead
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let mut filter = sidebloom::read_filter(&self.filter)?;
        InputLines::open(&self.lines, "adding")?
            .ending_in_nul(self.null)
            .for_each(|line| Ok(filter.insert(line).map(drop)?))?;
        files::write(cx, self.output.as_ref().unwrap_or(&self.filter), &filter)?;
        Ok(Outcome::Found)
    }
}
