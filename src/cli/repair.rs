//! `sidebloom repair`: rebuilds the manifest of a store from its segments.

use super::context::{Context, Failure, Outcome};
use super::{human, progress};
use std::io::Write;

/// Rebuild a lost or damaged manifest from the segments
///
/// For a store that does not open. Nothing is removed: files that cannot be read are renamed to *.damaged and named here. Run
/// `verify` afterwards.
#[derive(clap::Args)]
pub struct Args {}

#[derive(serde::Serialize)]
struct Report {
    rebuilt: bool,
    segments: u64,
    entries: u64,
    set_aside: Vec<String>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let spinner = progress::spinner("repairing");
        let repaired = sidebloom::repair(&cx.db)?;
        spinner.finish_and_clear();
        let report = Report {
            rebuilt: repaired.rebuilt,
            segments: repaired.segments,
            entries: repaired.entries,
            set_aside: repaired.set_aside.iter().map(ToString::to_string).collect(),
        };
        if cx.json {
            cx.print_json(&report)?;
        } else {
            report.print(&mut *cx.out())?;
        }
        Ok(Outcome::Found)
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        self.set_aside.iter().try_for_each(|file| writeln!(out, "set aside: {file}"))?;
        let [segments, entries] = [self.segments, self.entries].map(human::count);
        let verdict = if self.rebuilt { "manifest rebuilt" } else { "the manifest was in order" };
        Ok(writeln!(out, "{verdict}: {segments} segments, {entries} entries")?)
    }
}
