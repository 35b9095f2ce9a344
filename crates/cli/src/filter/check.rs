//! `sidebloom filter check`: prints the lines that may be in a filter, or in each of several.

use super::sift::Sift;
use crate::context::{Context, Failure, Outcome};
use sidebloom::filter::{AnyFilter, Verdict};
use std::path::PathBuf;

/// Print the lines that may be in a filter
///
/// With --and, prints the lines that may be in every filter. The filters can be of any kind, size and hash,
/// since each is probed separately. Several noisy filters of one list come close to the list in this way:
/// `filter info` says how close.
///
/// Exit codes follow grep: 0 if lines were printed (or counted), 1 if none were, 2 on error. With --json,
/// each line is an object with `key`, or `key_hex` if it is not UTF-8.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    filter: PathBuf,
    #[command(flatten)]
    sift: Sift,
    /// More filters that a line must pass; give the file of lines before them
    #[arg(long, value_name = "FILTER", num_args = 1..)]
    and: Vec<PathBuf>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let paths = std::iter::once(&self.filter).chain(&self.and);
        let filters = paths.map(sidebloom::read_filter).collect::<sidebloom::Result<Vec<_>>>()?;
        self.sift.run(cx, |lines| Ok(ask_all(&filters, lines)))
    }
}

/// What all filters together say of each line. A filter is probed only for lines that passed those before it.
fn ask_all(filters: &[AnyFilter], lines: &[&[u8]]) -> Vec<Verdict> {
    let Some((first, others)) = filters.split_first() else { return vec![Verdict::Maybe; lines.len()] };
    let mut verdicts = first.contains_many(lines);
    if others.is_empty() {
        return verdicts;
    }
    let passed = |verdict: &Verdict| *verdict == Verdict::Maybe;
    let left: Vec<&[u8]> =
        lines.iter().zip(&verdicts).filter(|(_, verdict)| passed(verdict)).map(|(line, _)| *line).collect();
    let answers = ask_all(others, &left);
    verdicts
        .iter_mut()
        .filter(|verdict| passed(verdict))
        .zip(answers)
        .for_each(|(verdict, answer)| *verdict = answer);
    verdicts
}
