//! `sidebloom verify`: reads every byte of the store and checks it.

use crate::context::{Context, Failure, Outcome};
use crate::remote::open_to_read;
use crate::{human, progress};
use sidebloom::show;
use std::io::Write;
use std::ops::ControlFlow;

/// Check every checksum, every key against its filter, and the manifest against the files
///
/// Prints one line per problem and exits 2 when data is damaged. Missing and unusable filters are listed too,
/// but are not damage: the next opening for writing rebuilds them.
#[derive(clap::Args)]
pub struct Args {}

#[derive(serde::Serialize)]
struct Report {
    ok: bool,
    segments: u64,
    entries: u64,
    /// Entries in the logs, not in a segment yet.
    log_entries: u64,
    bytes: u64,
    filters: u64,
    problems: Vec<String>,
    unusable_filters: Vec<String>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let bar = progress::work_bar("verifying");
        let found = open_to_read(cx)?.verify_with(|so_far| {
            progress::show(&bar, so_far);
            ControlFlow::Continue(())
        })?;
        bar.finish_and_clear();
        let report = Report {
            ok: found.problems.is_empty(),
            segments: found.segments,
            entries: found.entries,
            log_entries: found.log_entries,
            bytes: found.bytes,
            filters: found.filters,
            problems: found.problems.iter().map(ToString::to_string).collect(),
            unusable_filters: found.unusable_filters,
        };
        cx.report(&report, |out| report.print(out))?;
        match report.problems.len() {
            0 => Ok(Outcome::Found),
            1 => Err(Failure::message(format!("{} is damaged: 1 problem found", cx.place()))),
            n => Err(Failure::message(format!("{} is damaged: {n} problems found", cx.place()))),
        }
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        self.problems
            .iter()
            .chain(&self.unusable_filters)
            .try_for_each(|problem| writeln!(out, "{}", show::escaped(problem)))?;
        let [segments, entries, log_entries, filters] =
            [self.segments, self.entries, self.log_entries, self.filters].map(human::count);
        let verdict = if self.ok { "ok" } else { "DAMAGED" };
        let bytes = human::bytes(self.bytes as f64);
        Ok(writeln!(
            out,
            "{verdict}: {segments} segments, {entries} entries, {bytes}; {log_entries} entries in the logs; {filters} filters agree"
        )?)
    }
}
