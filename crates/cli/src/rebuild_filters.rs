//! `sidebloom rebuild-filters`: retunes filters without touching the data.

use crate::context::{Context, Failure, Outcome};
use crate::human::{parse_bits, parse_bytes, parse_rate};
use crate::{human, progress};
use sidebloom::FilterPolicy;
use std::io::Write;
use std::ops::ControlFlow;

/// Retune the filters, by bits per key, rate or memory
///
/// Writes only sidecar files (NNNNNN.filter); segments keep their bytes. Filters that already fit are kept,
/// so to continue after an interruption, run the command again. Segments written later get the filters of the
/// policy that the store is opened with. Without an option: the library's default, 10 bits per key on
/// average.
#[derive(clap::Args)]
#[group(multiple = false)]
pub struct Args {
    /// Bits per key, on average over the levels: with 8, about 0.8 % of absent keys pass; with 10, 0.2 %;
    /// with 14, 0.02 %
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
    /// False-positive rate of a lookup over all levels, as 0.001 or 0.1%, using as little memory as possible
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    target_fpr: Option<f64>,
    /// Memory for all filters together, in bytes; K, M and G stand for powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Blocked Bloom filters of this many bits per key on every level
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    blocked_bloom: Option<f64>,
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
    fn policy(&self) -> FilterPolicy {
        let bits = self.bits_per_key.map(FilterPolicy::bits_per_key);
        let rate = self.target_fpr.map(FilterPolicy::target_fpr);
        let memory = self.memory.map(FilterPolicy::memory_budget);
        let bloom = self.blocked_bloom.map(FilterPolicy::blocked_bloom);
        bits.or(rate).or(memory).or(bloom).unwrap_or_default()
    }

    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let db = cx.open_to_write(false)?;
        let bar = progress::bar("rebuilding filters", 0);
        let rebuilt = db.rebuild_filters_with(self.policy(), |so_far| {
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
        cx.report(&report, |out| report.print(out))?;
        Ok(Outcome::Found)
    }
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
