//! `sidebloom rebuild-filters`: retunes filters without touching the data.

use crate::context::{Context, Failure, Outcome};
use crate::keyspace_arg::KeyspaceArg;
use crate::policy_args::PolicyArgs;
use crate::{human, progress};
use sidebloom::{Db, RebuildReport};
use std::io::Write;
use std::ops::ControlFlow;

/// Retune the filters, by bits per key, rate or memory
///
/// Writes only sidecar files (NNNNNN.filter); segments keep their bytes. Filters that already fit are kept,
/// so to continue after an interruption, run the command again. Segments written later get the filters of the
/// policy that the store is opened with. Without an option: the library's default, 10 bits per key on
/// average. Keyspaces with a policy of their own keep that.
///
/// With --keyspace, gives the segments of that keyspace the filters that its options ask for.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(serde::Serialize)]
struct Report {
    segments: u64,
    kept: u64,
    quarantined: u64,
    keys: u64,
    filter_bytes: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let policy = self.policy.policy();
        if self.keyspace.is_given() && policy.is_some() {
            return Err(Failure::message(
                "the options of a keyspace are stored: change them with `sidebloom keyspaces set NAME --rebuild`",
            ));
        }
        let opened = self.keyspace.open_to_write(cx, false)?;
        report(cx, &opened.db, |progress| match self.keyspace.is_given() {
            true => opened.rebuild_filters_with(progress),
            false => opened.db.rebuild_filters_with(policy.unwrap_or_default(), progress),
        })?;
        Ok(Outcome::Found)
    }
}

/// What is called before each segment.
type Progress<'a> = &'a mut dyn FnMut(&RebuildReport) -> ControlFlow<()>;

/// Rebuilds filters with a progress bar, and prints what was done.
pub fn report(
    cx: &Context,
    db: &Db,
    rebuild: impl FnOnce(Progress<'_>) -> sidebloom::Result<RebuildReport>,
) -> Result<(), Failure> {
    // Only verified filters are known to fit. The rebuild meets again what cannot be read.
    _ = db.warm();
    let bar = progress::bar("rebuilding filters", 0);
    let rebuilt = rebuild(&mut |so_far| {
        bar.set_length(so_far.total);
        bar.set_position(so_far.segments + so_far.kept + so_far.quarantined);
        ControlFlow::Continue(())
    })?;
    bar.finish_and_clear();
    let report = Report {
        segments: rebuilt.segments,
        kept: rebuilt.kept,
        quarantined: rebuilt.quarantined,
        keys: rebuilt.keys,
        filter_bytes: rebuilt.filter_bytes,
    };
    cx.report(&report, |out| report.print(out))
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let bits = 8.0 * self.filter_bytes as f64 / (self.keys.max(1)) as f64;
        writeln!(
            out,
            "rebuilt the filters of {} segments, kept {}: {} keys, {}, {bits:.1} bits per key",
            human::count(self.segments),
            human::count(self.kept),
            human::count(self.keys),
            human::bytes(self.filter_bytes as f64),
        )?;
        if self.quarantined > 0 {
            let quarantined = human::count(self.quarantined);
            writeln!(out, "quarantined segments skipped: {quarantined}; run `sidebloom repair`")?;
        }
        Ok(())
    }
}
