//! `sidebloom filter remove`: removes lines from a counting filter.

use super::files;
use super::input::InputLines;
use crate::context::{Context, Failure, Outcome};
use crate::notice::notice;
use std::path::PathBuf;

/// Remove lines from a counting filter
///
/// Remove only lines that were added, and no more often than they were added. The filter cannot check this:
/// removing a line that passes by chance takes counts from lines that are present. Lines that are certainly
/// absent are reported on standard error, and the exit code is 1.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    /// The lines to remove
    #[arg(default_value = "-")]
    lines: PathBuf,
    /// Lines end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
    /// Write the result to this file instead
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Absent lines reported individually.
const NAMED: u64 = 10;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let mut filter = sidebloom::read_filter(&self.filter)?;
        let mut missing = 0u64;
        InputLines::open(&self.lines, "removing")?.ending_in_nul(self.null).for_each(|line| {
            if !filter.remove(line)? {
                missing += 1;
                match missing {
                    n if n <= NAMED => notice(format_args!("not in the filter: {}", line.escape_ascii())),
                    n if n == NAMED + 1 => notice("further absent lines are not reported"),
                    _ => {}
                }
            }
            Ok(())
        })?;
        files::write(cx, self.output.as_ref().unwrap_or(&self.filter), &filter)?;
        Ok(Outcome::found(missing == 0))
    }
}
