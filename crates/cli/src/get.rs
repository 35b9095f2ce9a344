//! `sidebloom get`: prints values.

use crate::context::{Context, Failure, Outcome};
use crate::filter::input::InputLines;
use crate::hex;
use crate::keyspace_arg::KeyspaceArg;
use crate::notice::notice;
use crate::print::{JsonRow, RowFormat};
use crate::rows::escape;
use sidebloom::Value;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Print the values of keys
///
/// For one key, prints the bytes of its value and nothing else (on a terminal, in the text form of `scan`,
/// followed by LF). For several keys, prints a row KEY TAB VALUE for each key found, in the order of the
/// arguments. Exits 1 when a key is not found.
///
/// `-` alone reads keys from standard input, one per line, and prints such rows. For the key that is a
/// hyphen, give `--hex 2d`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// The keys, or `-` for those of standard input
    #[arg(required = true, value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<OsString>,
    /// Keys are given, and values printed, as hex digits
    #[arg(long)]
    hex: bool,
    /// Keys from standard input (`-`) end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
}

#[derive(serde::Serialize)]
struct GetReport<'a> {
    #[serde(flatten)]
    row: JsonRow<'a>,
    found: bool,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        match &self.keys[..] {
            [only] if only == "-" => return self.answer_lines(cx),
            _ if self.null => {
                return Err(Failure::message("--null needs `-`, which reads keys from standard input"));
            }
            _ => {}
        }
        let keys: Vec<Vec<u8>> =
            self.keys.iter().map(|text| hex::argument("key", text, self.hex)).collect::<Result<_, _>>()?;
        let values = self.keyspace.open_to_read(cx)?.multi_get(&keys)?;
        let all_found = values.iter().all(Option::is_some);
        if keys.iter().zip(&values).any(|(key, value)| key == b"-0" && value.is_none()) {
            notice("-0 is taken for a key, which was not found; `get -0 -` reads keys that end in NUL");
        }
        if let ([_], [Some(value)], false) = (&keys[..], &values[..], cx.json) {
            self.print_alone(cx, value)?;
            return Ok(Outcome::Found);
        }
        self.print_rows(cx, &keys, &values)?;
        Ok(Outcome::found(all_found))
    }

    /// Looks up the keys of standard input, in batches.
    fn answer_lines(&self, cx: &Context) -> Result<Outcome, Failure> {
        let db = self.keyspace.open_to_read(cx)?;
        let mut all_found = true;
        let mut lines = InputLines::open(Path::new("-"), "looking up")?.ending_in_nul(self.null);
        lines.for_each_batch(|lines| {
            let mut malformed = Ok(());
            let key = |line| hex::argument("key", OsStr::from_bytes(line), self.hex);
            let keys: Vec<Vec<u8>> = lines
                .iter()
                .map_while(|line| key(line).map_err(|failure| malformed = Err(failure)).ok())
                .collect();
            let values = db.multi_get(&keys)?;
            all_found &= values.iter().all(Option::is_some);
            self.print_rows(cx, &keys, &values)?;
            malformed
        })?;
        Ok(Outcome::found(all_found))
    }

    fn print_rows(&self, cx: &Context, keys: &[Vec<u8>], values: &[Option<Value>]) -> Result<(), Failure> {
        for (key, value) in keys.iter().zip(values) {
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
        Ok(())
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
