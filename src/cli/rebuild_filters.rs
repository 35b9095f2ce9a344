//! `sidebloom rebuild-filters`: retunes the filters without touching the data.

use super::context::{Context, Failure, Outcome};
use super::{human, progress};
use sidebloom::FilterPolicy;
use std::io::Write;

/// Write all filters anew, with other bits per key if asked
///
/// Only sidecar files (NNNNNN.filter) are written; segments keep their bytes. Segments written later get the filters of the
/// policy that the store is opened with.
#[derive(clap::Args)]
pub struct Args {
    /// Bits for each key, on average over the levels: 8 let about 0.8 % of the absent keys through, 10 0.2 %, 14 0.02 %
    /// [default: the library's policy]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits_per_key: Option<f64>,
}

#[derive(serde::Serialize)]
struct Report {
    segments: u64,
    keys: u64,
    filter_bytes: u64,
}

/// A number of bits that makes sense for a filter.
pub fn parse_bits(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(bits) if (2.0..=64.0).contains(&bits) => Ok(bits),
        _ => Err("from 2 to 64 bits".to_owned()),
    }
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let db = cx.open_to_write(false)?;
        let policy = self.bits_per_key.map(FilterPolicy::bits_per_key).unwrap_or_default();
        let spinner = progress::spinner("rebuilding filters");
        let rebuilt = db.rebuild_filters(policy)?;
        spinner.finish_and_clear();
        let report =
            Report { segments: rebuilt.segments, keys: rebuilt.keys, filter_bytes: rebuilt.filter_bytes };
        if cx.json {
            cx.print_json(&report)?;
        } else {
            let bits = 8.0 * report.filter_bytes as f64 / (report.keys.max(1)) as f64;
            writeln!(
                cx.out(),
                "rebuilt the filters of {} segments: {} keys, {}, {bits:.1} bits per key",
                human::count(report.segments),
                human::count(report.keys),
                human::bytes(report.filter_bytes as f64),
            )?;
        }
        Ok(Outcome::Found)
    }
}
