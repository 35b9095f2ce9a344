//! `sidebloom guard check`: prints the lines that may be keys.

use crate::context::{Context, Failure, Outcome};
use crate::filter::sift::Sift;
use sidebloom::filter::Verdict;
use sidebloom::guard::GuardOptions;
use std::path::PathBuf;

/// Print the lines that may be keys of the database
///
/// Exit codes follow grep: 0 if lines were printed (or counted), 1 if none were, 2 on error. With --json, each line is an object with
/// `key`, or `key_hex` if it is not UTF-8. The guard is opened read-only.
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
    #[command(flatten)]
    sift: Sift,
    /// Check each "maybe" against the keys that the guard has on disk, and print only those found there
    #[arg(long)]
    exact: bool,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let guard = cx.opening(|| GuardOptions::new().read_only(true).open(&self.dir))?;
        self.sift.run(cx, |lines| {
            let mut verdicts = guard.may_contain_many(lines);
            for (verdict, line) in verdicts.iter_mut().zip(lines).filter(|_| self.exact) {
                if *verdict == Verdict::Maybe && !guard.contains(line)? {
                    *verdict = Verdict::Absent;
                }
            }
            Ok(verdicts)
        })
    }
}
