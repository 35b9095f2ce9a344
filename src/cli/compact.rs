//! `sidebloom compact`: merges all levels now.

use super::context::{Context, Failure, Outcome};
use super::{human, progress};
use std::io::Write;
use std::time::Instant;

/// Merge all segments now, dropping deleted and overwritten rows
///
/// Compaction goes on in the background while a store is open; this is for a store that will be read for long.
#[derive(clap::Args)]
pub struct Args {}

#[derive(serde::Serialize)]
struct Report {
    data_bytes_before: u64,
    data_bytes_after: u64,
    seconds: f64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let db = cx.open_to_write(false)?;
        let data_bytes = || db.stats().levels.iter().map(|level| level.data_bytes).sum::<u64>();
        let spinner = progress::spinner("compacting");
        let start = Instant::now();
        // The log's rows count too: on disk they become part of the first level.
        db.flush()?;
        let data_bytes_before = data_bytes();
        db.compact()?;
        let report = Report {
            data_bytes_before,
            data_bytes_after: data_bytes(),
            seconds: start.elapsed().as_secs_f64(),
        };
        spinner.finish_and_clear();
        if cx.json {
            cx.print_json(&report)?;
        } else {
            let [before, after] =
                [report.data_bytes_before, report.data_bytes_after].map(|n| human::bytes(n as f64));
            writeln!(cx.out(), "compacted {before} to {after} in {:.1} s", report.seconds)?;
        }
        Ok(Outcome::Found)
    }
}
