//! `sidebloom put`: writes one value.

use crate::context::{Context, Failure, Outcome};
use crate::hex;
use crate::print::JsonKey;
use sidebloom::MAX_VALUE_BYTES;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

/// Write a value, replacing any existing one
///
/// Creates the store if it is missing.
#[derive(clap::Args)]
pub struct Args {
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The value; `-` reads it from standard input
    #[arg(allow_negative_numbers = true)]
    value: OsString,
    /// Key and value are hex digits (standard input is not)
    #[arg(long)]
    hex: bool,
    /// Return only when the value is on stable storage
    #[arg(long)]
    sync: bool,
}

#[derive(serde::Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    value_bytes: usize,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let key = hex::argument("key", &self.key, self.hex)?;
        let value =
            if self.value == "-" { read_stdin()? } else { hex::argument("value", &self.value, self.hex)? };
        let db = cx.open_to_write(true)?;
        db.put(&key, &value)?;
        if self.sync {
            db.sync()?;
        }
        if cx.json {
            cx.print_json(&Report { key: JsonKey::new(&key, self.hex), value_bytes: value.len() })?;
        }
        Ok(Outcome::Found)
    }
}

/// Reads at most one byte over the limit, enough for the store to reject the value.
fn read_stdin() -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let mut limited = std::io::stdin().lock().take(MAX_VALUE_BYTES as u64 + 1);
    limited.read_to_end(&mut value).map_err(|e| Failure::file("read", Path::new("-"), e))?;
    Ok(value)
}
