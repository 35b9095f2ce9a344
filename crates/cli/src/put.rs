//! `sidebloom put`: writes one value.

use crate::context::{Context, Failure, Outcome};
use crate::hex;
use crate::human::parse_lifetime;
use crate::keyspace_arg::KeyspaceArg;
use crate::notice::notice;
use crate::print::JsonKey;
use sidebloom::{CompareAndSet, Expiry, Keyspace, MAX_VALUE_BYTES};
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Write a value, replacing any existing one
///
/// Creates the store if it is missing, except with --if and --keyspace. Exits 1 when --if-absent or --if
/// does not hold; then nothing is written.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// The key
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The value; `-` reads it from standard input
    #[arg(allow_negative_numbers = true)]
    value: OsString,
    /// Write only if the key is absent
    #[arg(long, conflicts_with = "expected")]
    if_absent: bool,
    /// Write only if the key has this value
    #[arg(long = "if", value_name = "VALUE", allow_hyphen_values = true)]
    expected: Option<OsString>,
    /// The row expires after this time, such as 90m, 24h or 7d
    #[arg(long = "for", value_name = "TIME", value_parser = parse_lifetime, conflicts_with = "expected")]
    lifetime: Option<Duration>,
    /// Key and values are hex digits (standard input is not)
    #[arg(long)]
    hex: bool,
    /// Return only when the value is on stable storage
    #[arg(long)]
    sync: bool,
}

const KEY_EXISTS: &str = "the key exists";

#[derive(serde::Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    value_bytes: usize,
    /// `None` without a condition.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<bool>,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let key = hex::argument("key", &self.key, self.hex)?;
        let expected =
            self.expected.as_ref().map(|text| hex::argument("--if", text, self.hex)).transpose()?;
        let value =
            if self.value == "-" { read_stdin()? } else { hex::argument("value", &self.value, self.hex)? };
        let db = self.keyspace.open_to_write(cx, expected.is_none())?;
        let has_condition = self.if_absent || expected.is_some();
        let written = match self.lifetime.map(Expiry::after) {
            Some(expiry) if self.if_absent => insert(&db, &key, &value, expiry)?,
            Some(expiry) => db.put_with(&key, &value, expiry).map(|()| true)?,
            None if has_condition => put_if(&db, &key, expected.as_deref(), &value)?,
            None => db.put(&key, &value).map(|()| true)?,
        };
        if self.sync {
            db.sync()?;
        }
        if cx.json {
            let (key, written) = (JsonKey::new(&key, self.hex), has_condition.then_some(written));
            cx.print_json(&Report { key, value_bytes: value.len(), written })?;
        }
        Ok(Outcome::found(written))
    }
}

/// Writes `value` if the key has the value `expected` (`None`: is absent), and says so if it has not.
fn put_if(db: &Keyspace, key: &[u8], expected: Option<&[u8]>, value: &[u8]) -> Result<bool, Failure> {
    let why = match db.compare_and_set(key, expected, Some(value))? {
        CompareAndSet::Set => return Ok(true),
        CompareAndSet::Differs(None) => "the key is absent",
        CompareAndSet::Differs(Some(_)) if expected.is_none() => KEY_EXISTS,
        CompareAndSet::Differs(Some(_)) => "the key has another value",
    };
    notice(format_args!("{why}; nothing was written"));
    Ok(false)
}

/// Writes a row that expires if its key is absent, and says so if it is not.
fn insert(db: &Keyspace, key: &[u8], value: &[u8], expiry: Expiry) -> Result<bool, Failure> {
    let is_new = db.insert_new_with(key, value, expiry)?;
    if !is_new {
        notice(format_args!("{KEY_EXISTS}; nothing was written"));
    }
    Ok(is_new)
}

/// Reads at most one byte over the limit, enough for the store to reject the value.
fn read_stdin() -> Result<Vec<u8>, Failure> {
    let mut value = Vec::new();
    let mut limited = std::io::stdin().lock().take(MAX_VALUE_BYTES as u64 + 1);
    limited.read_to_end(&mut value).map_err(|e| Failure::file("read", Path::new("-"), e))?;
    Ok(value)
}
