//! `sidebloom repair`: salvages a damaged store.

use crate::context::{Context, Failure, Outcome};
use crate::{human, progress};
use sidebloom::{Progress, show};
use std::io::Write;

/// Salvage the readable rows of a damaged store
///
/// For a store that does not open or is partly unreadable. Reads every block, rewrites the rows around
/// damaged blocks, and rebuilds a lost manifest from the segments. Removes nothing: renames damaged files to
/// *.damaged and lists them, and lists the key ranges that lost rows. Keys there may be missing, have an
/// older value, or reappear although they were deleted.
#[derive(clap::Args)]
pub struct Args {}

#[derive(serde::Serialize)]
struct Report {
    rebuilt: bool,
    segments: u64,
    entries: u64,
    set_aside: Vec<String>,
    bytes_set_aside: u64,
    rows_salvaged: u64,
    bytes_unreadable: u64,
    lost: Vec<String>,
    /// Keyspaces that had lost their names and options, by their names now.
    keyspaces_named: Vec<String>,
    logs: Option<LogsReport>,
}

#[derive(serde::Serialize)]
struct LogsReport {
    operations_kept: u64,
    bytes_unreadable: u64,
    /// First and last.
    operations_lost: Vec<(u64, u64)>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let bar = progress::work_bar("repairing");
        let dir = cx.local_db()?;
        let tell = |so_far: &Progress| progress::show(&bar, so_far);
        let repaired = cx.opening(|| sidebloom::repair_with(dir, tell))?;
        bar.finish_and_clear();
        let report = Report {
            rebuilt: repaired.rebuilt,
            segments: repaired.segments,
            entries: repaired.entries,
            set_aside: repaired.set_aside.iter().map(ToString::to_string).collect(),
            bytes_set_aside: repaired.bytes_set_aside,
            rows_salvaged: repaired.rows_salvaged,
            bytes_unreadable: repaired.bytes_unreadable,
            lost: repaired.lost.iter().map(ToString::to_string).collect(),
            keyspaces_named: repaired.keyspaces_named,
            logs: repaired.logs.map(|logs| LogsReport {
                operations_kept: logs.operations_kept,
                bytes_unreadable: logs.bytes_unreadable,
                operations_lost: logs.operations_lost.iter().map(|r| (*r.start(), *r.end())).collect(),
            }),
        };
        cx.report(&report, |out| report.print(out))?;
        Ok(Outcome::Found)
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        self.set_aside.iter().try_for_each(|file| writeln!(out, "set aside: {file}"))?;
        self.lost.iter().try_for_each(|range| {
            writeln!(out, "rows lost: {range}: keys there may be missing, have an older value, or reappear although deleted")
        })?;
        if !self.set_aside.is_empty() {
            let [aside, unreadable] =
                [self.bytes_set_aside, self.bytes_unreadable].map(|n| human::bytes(n as f64));
            let salvaged = human::count(self.rows_salvaged);
            writeln!(out, "{aside} set aside: {salvaged} rows salvaged, {unreadable} of rows unreadable")?;
        }
        if let Some(logs) = &self.logs {
            logs.print(out)?;
        }
        self.keyspaces_named.iter().try_for_each(|name| {
            writeln!(out, "keyspace named again, with the options of the store: {}", show::escaped(name))
        })?;
        let [segments, entries] = [self.segments, self.entries].map(human::count);
        let verdict = if self.rebuilt { "manifest rewritten" } else { "manifest intact" };
        Ok(writeln!(out, "{verdict}: {segments} segments, {entries} entries")?)
    }
}

impl LogsReport {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let (kept, unreadable) =
            (human::count(self.operations_kept), human::bytes(self.bytes_unreadable as f64));
        writeln!(out, "logs rewritten: {kept} operations kept, {unreadable} unreadable")?;
        let mut lost = self.operations_lost.iter();
        Ok(lost.try_for_each(|(first, last)| writeln!(out, "operations lost: {first} to {last}"))?)
    }
}
