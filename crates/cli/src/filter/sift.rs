//! Looks up lines in batches and prints those that pass, or those that do not.

use super::input::InputLines;
use crate::context::{Context, Failure, Outcome};
use crate::print::LineFormat;
use sidebloom::filter::Verdict;
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Sift {
    /// The lines to look up
    #[arg(default_value = "-")]
    lines: PathBuf,
    /// Print the lines that are certainly absent instead
    #[arg(short = 'v', long = "invert-match")]
    invert: bool,
    /// Print only the number of lines
    #[arg(short, long)]
    count: bool,
    /// Lines end in NUL instead of LF, also those printed
    #[arg(short = '0', long)]
    null: bool,
}

impl Sift {
    /// Prints the lines that may be present according to `ask`, or those that are absent, or their number.
    pub fn run(
        &self,
        cx: &Context,
        mut ask: impl FnMut(&[&[u8]]) -> Result<Vec<Verdict>, Failure>,
    ) -> Result<Outcome, Failure> {
        let wanted = if self.invert { Verdict::Absent } else { Verdict::Maybe };
        let mut found = 0u64;
        let mut out = cx.out();
        let format = LineFormat::new(cx.json, self.null);
        let mut lines = InputLines::open(&self.lines, "checking")?.ending_in_nul(self.null);
        let asked = lines.for_each_batch(|lines| {
            for (line, _) in lines.iter().zip(ask(lines)?).filter(|(_, verdict)| *verdict == wanted) {
                found += 1;
                if !self.count {
                    format.write(&mut *out, line)?;
                }
            }
            Ok(())
        })?;
        drop(out);
        match (self.count, cx.json) {
            (true, true) => cx.print_json(&serde_json::json!({ "count": found, "lines": asked }))?,
            (true, false) => writeln!(cx.out(), "{found}")?,
            (false, _) => {}
        }
        Ok(Outcome::found(found > 0))
    }
}
