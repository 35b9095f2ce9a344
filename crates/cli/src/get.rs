//! `sidebloom get`: prints values.

use crate::context::{Context, Failure, Outcome};
use crate::hex;
use crate::print::{JsonRow, RowFormat};
use crate::remote::open_to_read;
use crate::rows::escape;
use std::ffi::OsString;
use std::io::Write;

/// Print the values of keys
///
/// For one key, prints the bytes of its value and nothing else (on a terminal, in the text form of `scan`, followed by LF). For several keys, prints a row
/// KEY TAB VALUE for each key found, in the order of the arguments. Exits 1 when a key is not found.
#[derive(clap::Args)]
pub struct Args {
    /// The keys
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<OsString>,
    /// Keys are given, and values printed, as hex digits
    #[arg(long)]
    hex: bool,
}

#[derive(serde::Serialize)]
struct GetReport<'a> {
    #[serde(flatten)]
    row: JsonRow<'a>,
    found: bool,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let keys: Vec<Vec<u8>> =
            self.keys.iter().map(|text| hex::argument("key", text, self.hex)).collect::<Result<_, _>>()?;
        let values = open_to_read(cx)?.multi_get(&keys)?;
        let all_found = values.iter().all(Option::is_some);
        if let ([_], [Some(value)], false) = (&keys[..], &values[..], cx.json) {
            self.print_alone(cx, value)?;
            return Ok(Outcome::Found);
        }
        for (key, value) in keys.iter().zip(&values) {
            let value = value.as_deref();
            if cx.json {
                cx.print_json(&GetReport {
                    row: JsonRow::new(key, value, self.hex),
                    found: value.is_some(),
                })?;
            } else if value.is_some() {
                RowFormat::new(false, self.hex).write(&mut *cx.out(), key, value)?;
            }
        }
        Ok(Outcome::found(all_found))
    }

    fn print_alone(&self, cx: &Context, value: &[u8]) -> Result<(), Failure> {
        let mut out = cx.out();
        if self.hex {
            return Ok(writeln!(out, "{}", hex::encode(value))?);
        }
        if cx.out_is_terminal() {
            escape::write_escaped(&mut *out, value)?;
            return Ok(out.write_all(b"\n")?);
        }
        Ok(out.write_all(value)?)
    }
}
