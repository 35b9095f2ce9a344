//! `sidebloom guard stats`: contents and size of a guard.

use crate::context::{Context, Failure, Outcome};
use crate::human;
use comfy_table::{CellAlignment, Table, presets};
use sidebloom::guard::{Guard, GuardOptions};
use std::io::Write;
use std::path::PathBuf;

/// Print a guard's contents and its use of memory and disk
#[derive(clap::Args)]
pub struct Args {
    /// The guard's directory
    dir: PathBuf,
}

#[derive(serde::Serialize)]
struct Report {
    /// The rule by which keys are equal.
    canonical: String,
    rows: u64,
    keys: u64,
    filter_bytes: u64,
    /// `None` for an empty guard.
    bits_per_key: Option<f64>,
    memtable_bytes: u64,
    disk_bytes: u64,
    expected_fpr: f64,
    filters_unavailable: u64,
    generation: u64,
    /// Size of the note, which holds a follower's position.
    note_bytes: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let report = Report::new(&cx.opening(|| GuardOptions::new().read_only(true).open(&self.dir))?)?;
        cx.report(&report, |out| report.print(out))?;
        Ok(Outcome::Found)
    }
}

impl Report {
    fn new(guard: &Guard) -> Result<Self, Failure> {
        let stats = guard.stats();
        Ok(Report {
            canonical: guard.canonical().to_string(),
            rows: stats.rows,
            keys: stats.keys,
            filter_bytes: stats.filter_bytes,
            bits_per_key: (stats.keys > 0).then(|| 8.0 * stats.filter_bytes as f64 / stats.keys as f64),
            memtable_bytes: stats.memtable_bytes,
            disk_bytes: stats.disk_bytes,
            expected_fpr: stats.expected_fpr,
            filters_unavailable: stats.filters_unavailable,
            generation: stats.generation,
            note_bytes: guard.note()?.map_or(0, |note| note.len() as u64),
        })
    }

    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let bytes = |bytes: u64| human::bytes(bytes as f64);
        let bits = self.bits_per_key.map_or(String::new(), |bits| format!(" ({bits:.2} bits per key)"));
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED.with_rounded_corners());
        table.add_row(["keys are", &self.canonical]);
        table.add_row(["rows", &human::count(self.rows)]);
        table.add_row(["distinct keys", &human::count(self.keys)]);
        table.add_row(["filters in memory", &format!("{}{bits}", bytes(self.filter_bytes))]);
        table.add_row(["latest changes in memory", &bytes(self.memtable_bytes)]);
        table.add_row(["on disk", &bytes(self.disk_bytes)]);
        table.add_row(["absent keys that pass", &human::percent(self.expected_fpr, 1.0)]);
        table.add_row(["filters unavailable", &human::count(self.filters_unavailable)]);
        table.add_row(["generation", &human::count(self.generation)]);
        table.add_row(["note", &bytes(self.note_bytes)]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Ok(writeln!(out, "{table}")?)
    }
}
