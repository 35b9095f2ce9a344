//! Rows on standard output: as text, as hex digits, as JSON.

use crate::context::Failure;
use crate::hex;
use crate::rows::escape;
use std::io::{IsTerminal, Write};
use std::sync::LazyLock;

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// The text form of [`escape`].
    Text,
    /// Hex digits.
    Hex,
    /// JSON; bytes that are not UTF-8 as hex digits. With `hex`, all bytes.
    Json {
        /// Keys and values as hex digits even when they are text.
        hex: bool,
    },
}

impl RowFormat {
    /// What `--json` and `--hex` ask for.
    pub fn new(json: bool, hex: bool) -> Self {
        match (json, hex) {
            (true, hex) => RowFormat::Json { hex },
            (false, true) => RowFormat::Hex,
            (false, false) => RowFormat::Text,
        }
    }

    /// Prints a row and its LF; no value prints the key alone.
    pub fn write(self, out: &mut impl Write, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
        match self {
            RowFormat::Json { hex } => {
                serde_json::to_writer(&mut *out, &JsonRow::new(key, value, hex))
                    .map_err(std::io::Error::from)?;
            }
            RowFormat::Hex => {
                out.write_all(hex::encode(key).as_bytes())?;
                if let Some(value) = value {
                    write!(out, "\t{}", hex::encode(value))?;
                }
            }
            RowFormat::Text => {
                escape::write_escaped(out, key)?;
                if let Some(value) = value {
                    out.write_all(b"\t")?;
                    escape::write_escaped(out, value)?;
                }
            }
        }
        Ok(out.write_all(b"\n")?)
    }
}

/// How lines of a file are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFormat {
    /// As they were read, but on a terminal in the text form of [`escape`]; then the end-of-line byte.
    Text(u8),
    /// As JSON rows.
    Json,
}

impl LineFormat {
    /// What `--json` and `--null` ask for.
    pub fn new(json: bool, null: bool) -> Self {
        match (json, null) {
            (true, _) => LineFormat::Json,
            (false, true) => LineFormat::Text(0),
            (false, false) => LineFormat::Text(b'\n'),
        }
    }

    /// Prints a line and its end.
    pub fn write(self, out: &mut impl Write, line: &[u8]) -> Result<(), Failure> {
        static ON_TERMINAL: LazyLock<bool> = LazyLock::new(|| std::io::stdout().is_terminal());
        self.write_to(out, line, *ON_TERMINAL)
    }

    fn write_to(self, out: &mut impl Write, line: &[u8], on_terminal: bool) -> Result<(), Failure> {
        let end = match self {
            LineFormat::Json => return RowFormat::new(true, false).write(out, line, None),
            LineFormat::Text(end) => end,
        };
        if on_terminal {
            escape::write_escaped(out, line)?;
        } else {
            out.write_all(line)?;
        }
        Ok(out.write_all(&[end])?)
    }
}

/// A row as a JSON object: `key` and `value`, or `key_hex` and `value_hex` where the bytes are not UTF-8.
#[derive(serde::Serialize)]
pub struct JsonRow<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

/// The key's part of [`JsonRow`].
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonKey<'a> {
    /// A key in UTF-8.
    Key(&'a str),
    /// Any other key, and every key with `--hex`.
    KeyHex(String),
}

impl<'a> JsonKey<'a> {
    /// The form that fits the bytes.
    pub fn new(key: &'a [u8], hex: bool) -> Self {
        match text(key, hex) {
            Some(text) => JsonKey::Key(text),
            None => JsonKey::KeyHex(hex::encode(key)),
        }
    }
}

impl<'a> JsonRow<'a> {
    /// The form that fits the bytes.
    pub fn new(key: &'a [u8], value: Option<&'a [u8]>, hex: bool) -> Self {
        let value_text = value.and_then(|bytes| text(bytes, hex));
        let value_hex = if value_text.is_none() { value.map(hex::encode) } else { None };
        JsonRow { key: JsonKey::new(key, hex), value: value_text, value_hex }
    }
}

fn text(bytes: &[u8], hex: bool) -> Option<&str> {
    if hex { None } else { std::str::from_utf8(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: RowFormat, key: &[u8], value: Option<&[u8]>) -> String {
        let mut out = Vec::new();
        format.write(&mut out, key, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_is_printed_as_it_is_but_does_not_drive_a_terminal() {
        for (on_terminal, printed) in [(false, &b"key\x1b[2J\xff\n"[..]), (true, b"key\\x1b[2J\\xff\n")] {
            let mut out = Vec::new();
            LineFormat::new(false, false).write_to(&mut out, b"key\x1b[2J\xff", on_terminal).unwrap();
            assert_eq!(out, printed);
        }
    }

    #[test]
    fn each_format_prints_one_line() {
        let row: (&[u8], Option<&[u8]>) = (b"a\tb", Some(b"\xff\n"));
        assert_eq!(printed(RowFormat::Text, row.0, row.1), "a\\tb\t\\xff\\n\n");
        assert_eq!(printed(RowFormat::Hex, row.0, row.1), "610962\tff0a\n");
        assert_eq!(
            printed(RowFormat::Json { hex: false }, row.0, row.1),
            "{\"key\":\"a\\tb\",\"value_hex\":\"ff0a\"}\n"
        );
        assert_eq!(
            printed(RowFormat::Json { hex: true }, b"a", Some(b"b")),
            "{\"key_hex\":\"61\",\"value_hex\":\"62\"}\n"
        );
        assert_eq!(printed(RowFormat::Text, b"a", None), "a\n");
        assert_eq!(printed(RowFormat::Json { hex: false }, b"", None), "{\"key\":\"\"}\n");
    }
}
