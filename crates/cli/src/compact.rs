//! `sidebloom compact`: merges all levels now.

use crate::context::{Context, Failure, Outcome};
use crate::keyspace_arg::KeyspaceArg;
use crate::{hex, human, progress};
use sidebloom::{OptionChanges, Progress};
use std::ffi::OsString;
use std::io::Write;
use std::ops::{Bound, ControlFlow};
use std::time::Instant;

/// Merge all segments now, dropping deleted and overwritten rows
///
/// An open store compacts itself in the background; use this before a long time of only reading. After an
/// interruption, run it again to continue where it stopped.
///
/// Merges the segments of all keyspaces. With --keyspace, only those with keys of that keyspace; with
/// --from or --to alone, only those with keys of the default one.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// Only segments with keys from this one on (inclusive)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    from: Option<OsString>,
    /// Only segments with keys before this one (exclusive)
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    to: Option<OsString>,
    /// The keys are given as hex digits
    #[arg(long)]
    hex: bool,
    /// Read and write at most this much per second, such as 20M; at least 64K
    #[arg(long, value_name = "BYTES", value_parser = human::parse_bytes)]
    rate: Option<u64>,
}

#[derive(serde::Serialize)]
struct Report {
    data_bytes_before: u64,
    data_bytes_after: u64,
    seconds: f64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let key = |name: &str, text: &Option<OsString>| {
            text.as_ref().map(|text| hex::argument(name, text, self.hex)).transpose()
        };
        let (from, to) = (key("--from", &self.from)?, key("--to", &self.to)?);
        if let (Some(from), Some(to)) = (&from, &to)
            && from >= to
        {
            let [from, to] = [from, to].map(|key| key.escape_ascii());
            return Err(Failure::message(format!("empty range: --from {from} is not before --to {to}")));
        }
        let from = from.map_or(Bound::Unbounded, Bound::Included);
        let to = to.map_or(Bound::Unbounded, Bound::Excluded);
        let db = self.keyspace.open_to_write(cx, false)?;
        if let Some(rate) = self.rate {
            db.db.set_options(OptionChanges::new().compaction_bytes_per_second(rate))?;
        }
        let data_bytes = || db.db.stats().levels.iter().map(|level| level.data_bytes).sum::<u64>();
        let bar = progress::work_bar("compacting");
        let start = Instant::now();
        // Rows in the log count too: the flush puts them into level 0.
        db.flush()?;
        let data_bytes_before = data_bytes();
        let mut show = |so_far: &Progress| {
            progress::show(&bar, so_far);
            ControlFlow::Continue(())
        };
        match (&from, &to) {
            (Bound::Unbounded, Bound::Unbounded) if !self.keyspace.is_given() => {
                db.db.compact_with(&mut show)?;
            }
            _ => db.compact_range_with((from, to), &mut show)?,
        }
        let report = Report {
            data_bytes_before,
            data_bytes_after: data_bytes(),
            seconds: start.elapsed().as_secs_f64(),
        };
        bar.finish_and_clear();
        cx.report(&report, |out| {
            let [before, after] =
                [report.data_bytes_before, report.data_bytes_after].map(|n| human::bytes(n as f64));
            Ok(writeln!(out, "compacted {before} to {after} in {:.1} s", report.seconds)?)
        })?;
        Ok(Outcome::Found)
    }
}
