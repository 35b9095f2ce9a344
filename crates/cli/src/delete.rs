//! `sidebloom delete`: removes keys.

use crate::context::{Context, Failure, Outcome};
use crate::hex;
use sidebloom::Batch;
use std::ffi::OsString;

/// Delete keys atomically
///
/// Exits 1 when a key was not found; the others are deleted nevertheless.
#[derive(clap::Args)]
pub struct Args {
    /// The keys
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<OsString>,
    /// Keys are hex digits
    #[arg(long)]
    hex: bool,
    /// Return only when the deletion is on stable storage
    #[arg(long)]
    sync: bool,
}

#[derive(serde::Serialize)]
struct Report {
    deleted: usize,
    not_found: usize,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let mut keys: Vec<Vec<u8>> =
            self.keys.iter().map(|text| hex::argument("key", text, self.hex)).collect::<Result<_, _>>()?;
        keys.sort();
        keys.dedup();
        let db = cx.open_to_write(false)?;
        let mut batch = Batch::new();
        let mut report = Report { deleted: 0, not_found: 0 };
        for key in &keys {
            if db.contains_key(key)? {
                batch.delete(key);
                report.deleted += 1;
            } else {
                report.not_found += 1;
            }
        }
        db.write(batch)?;
        if self.sync {
            db.sync()?;
        }
        if cx.json {
            cx.print_json(&report)?;
        }
        Ok(Outcome::found(report.not_found == 0))
    }
}
