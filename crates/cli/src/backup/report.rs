//! What is printed about a backup, and making one.

use crate::context::{Context, Failure, Outcome};
use crate::{human, progress};
use chrono::{DateTime, Datelike, Timelike};
use sidebloom::Progress;
use sidebloom::backup::{Backup, Removed, Repository};
use std::io::Write;
use std::time::UNIX_EPOCH;

#[derive(serde::Serialize)]
pub struct Report {
    number: u64,
    /// "store" or "guard".
    kind: String,
    /// In UTC.
    time: String,
    bytes: u64,
    /// Of those files that no earlier backup had.
    new_bytes: u64,
    files: u64,
    entries: u64,
}

#[derive(serde::Serialize)]
struct Made {
    #[serde(flatten)]
    backup: Report,
    /// By --keep.
    removed: Option<RemovedReport>,
}

#[derive(serde::Serialize)]
pub struct RemovedReport {
    backups: u64,
    files: u64,
    bytes: u64,
}

impl Report {
    pub fn of(backup: &Backup) -> Self {
        let since = backup.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Report {
            number: backup.number,
            kind: backup.kind.to_string(),
            time: utc(since.as_secs()),
            bytes: backup.bytes,
            new_bytes: backup.new_bytes,
            files: backup.files,
            entries: backup.entries,
        }
    }

    pub fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let [bytes, new] = [self.bytes, self.new_bytes].map(|bytes| human::bytes(bytes as f64));
        let [files, entries] = [self.files, self.entries].map(human::count);
        let (number, kind, time) = (self.number, &self.kind, &self.time);
        Ok(writeln!(
            out,
            "backup {number} of {time}: {kind}, {bytes}, of which {new} are new; {files} files, {entries} entries"
        )?)
    }
}

/// A time in seconds since 1970, as in RFC 3339.
fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(String::new, |time| {
        let [month, day] = [time.month(), time.day()];
        let [hour, minute, second] = [time.hour(), time.minute(), time.second()];
        format!("{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", time.year())
    })
}

impl RemovedReport {
    pub fn of(removed: Removed) -> Self {
        RemovedReport { backups: removed.backups, files: removed.files, bytes: removed.bytes }
    }

    pub fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let (backups, files) = (human::count(self.backups), human::count(self.files));
        let bytes = human::bytes(self.bytes as f64);
        Ok(writeln!(out, "removed {backups} old backups and {files} files, {bytes}")?)
    }
}

/// Makes a backup and reports it. Then keeps only the newest, if that was asked for.
pub fn add(
    cx: &Context,
    repository: &Repository,
    keep: Option<u64>,
    back_up: impl Fn(&dyn Fn(&Progress)) -> sidebloom::Result<Backup>,
) -> Result<Outcome, Failure> {
    let backup = with_bar("backing up", |progress| cx.opening(|| back_up(progress)))?;
    let removed = keep.map(|count| cx.opening(|| repository.keep(count))).transpose();
    let removed = removed.map_err(|failure| {
        let number = backup.number;
        Failure::message(format!("backup {number} is complete, but older ones were not removed: {failure}"))
    })?;
    let made = Made { backup: Report::of(&backup), removed: removed.map(RemovedReport::of) };
    cx.report(&made, |out| {
        made.backup.print(out)?;
        made.removed.iter().try_for_each(|removed| removed.print(out))
    })?;
    Ok(Outcome::Found)
}

/// Shows a bar of bytes during `work`.
pub fn with_bar<T>(
    label: &str,
    work: impl FnOnce(&dyn Fn(&Progress)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let bar = progress::work_bar(label);
    let outcome = work(&|so_far| progress::show(&bar, so_far));
    bar.finish_and_clear();
    outcome
}
