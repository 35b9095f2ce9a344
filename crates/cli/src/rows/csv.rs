//! `--format csv`: columns separated by commas, quoted where necessary (RFC 4180).
//!
//! Parsed here rather than by a crate, so that a malformed row is rejected with its line number. Crates
//! accept text after a closing quote, or an unclosed quote, which turns the rest of the file into one column.

use super::columns::{ColumnChoice, FoundColumns, check_key, join};
use super::source::{LineReader, MAX_LINE_BYTES, Row, RowError, Rows, without_cr};
use std::io::BufRead;

/// A reader of this format.
pub struct Csv<R> {
    lines: LineReader<R>,
    record: Record,
    chosen: ColumnChoice,
    layout: Option<FoundColumns>,
}

impl<R: BufRead> Csv<R> {
    /// Reads `input`.
    pub fn new(input: R, chosen: ColumnChoice) -> Self {
        Csv { lines: LineReader::text(input), record: Record::default(), chosen, layout: None }
    }

    /// Reads a record. Returns the line that it begins on, or `None` at the end.
    fn read(&mut self) -> Result<Option<u64>, RowError> {
        self.record.clear();
        let Some((begin, line)) = self.lines.next_filled()? else { return Ok(None) };
        let bad = |why: &str| RowError::Bad { line: begin, why: why.to_owned() };
        let mut open = self.record.add_line(line, false).map_err(bad)?;
        while open {
            let (_, line) = self.lines.next()?.ok_or_else(|| bad("unclosed quote"))?;
            self.record.bytes.push(b'\n');
            open = self.record.add_line(line, true).map_err(bad)?;
            if self.record.bytes.len() > MAX_LINE_BYTES {
                return Err(RowError::Input(format!(
                    "the quote in line {begin} is not closed within {MAX_LINE_BYTES} bytes"
                )));
            }
        }
        Ok(Some(begin))
    }
}

impl<R: BufRead> Rows for Csv<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, RowError> {
        let Some(line) = self.read()? else { return Ok(false) };
        if let Some(layout) = &self.layout {
            return self.record.take(row, layout, line).map(|()| true);
        }
        let columns: Vec<&[u8]> = (0..self.record.ends.len()).filter_map(|i| self.record.column(i)).collect();
        let layout = self.chosen.find(&columns).map_err(RowError::Input)?;
        self.record.take(row, &layout, line)?;
        self.layout = Some(layout);
        if self.chosen.header { self.next(row) } else { Ok(true) }
    }
}

/// A row's columns, unquoted.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    /// The end of each column in `bytes`.
    ends: Vec<usize>,
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn column(&self, i: usize) -> Option<&[u8]> {
        let start = if i == 0 { 0 } else { *self.ends.get(i - 1)? };
        self.bytes.get(start..*self.ends.get(i)?)
    }

    fn end_column(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Adds the columns of a line, which may begin inside quotes. `true` when it ends inside quotes.
    fn add_line(&mut self, line: &[u8], mut quoted: bool) -> Result<bool, &'static str> {
        let mut rest = line;
        loop {
            if !quoted && let Some(inside) = rest.strip_prefix(b"\"") {
                rest = inside;
                quoted = true;
            }
            let after = if quoted { self.add_quoted(rest) } else { Some(self.add_plain(rest)) };
            let Some(after) = after else { return Ok(true) };
            quoted = false;
            self.end_column();
            if without_cr(after).is_empty() {
                return Ok(false);
            }
            rest = after.strip_prefix(b",").ok_or("text after a closing quote")?;
        }
    }

    /// Adds text up to the next comma. Returns the rest, from that comma on.
    fn add_plain<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let end = text.iter().position(|&b| b == b',');
        let (column, after) = text.split_at(end.unwrap_or(without_cr(text).len()));
        self.bytes.extend_from_slice(column);
        after
    }

    /// Adds text up to the closing quote. Returns the rest, or `None` if the line has no closing quote.
    fn add_quoted<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&b| b == b'"') {
            let (column, quote) = rest.split_at(at);
            self.bytes.extend_from_slice(column);
            match quote.strip_prefix(b"\"\"") {
                Some(after) => {
                    self.bytes.push(b'"');
                    rest = after;
                }
                None => return quote.get(1..),
            }
        }
        self.bytes.extend_from_slice(rest);
        None
    }

    fn take(&self, row: &mut Row, layout: &FoundColumns, line: u64) -> Result<(), RowError> {
        let bad = |why| RowError::Bad { line, why };
        layout.check(self.ends.len()).map_err(bad)?;
        row.line = line;
        join(&mut row.key, &layout.key, |i| self.column(i));
        check_key(&row.key, layout.key.len()).map_err(bad)?;
        if layout.value_is_rest {
            row.value.clear();
            layout
                .value
                .iter()
                .filter_map(|&i| self.column(i))
                .for_each(|column| quote(&mut row.value, column));
            row.value.pop();
        } else {
            join(&mut row.value, &layout.value, |i| self.column(i));
        }
        Ok(())
    }
}

/// Adds a column as CSV text, and a comma.
fn quote(text: &mut Vec<u8>, column: &[u8]) {
    if column.iter().any(|b| matches!(b, b',' | b'"' | b'\r' | b'\n')) {
        text.push(b'"');
        for &byte in column {
            text.extend_from_slice(if byte == b'"' { b"\"" } else { b"" });
            text.push(byte);
        }
        text.push(b'"');
    } else {
        text.extend_from_slice(column);
    }
    text.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::source::read_all;
    use proptest::prelude::*;

    const SONGS: &[u8] = b"\xef\xbb\xbftitle,artist,note\r\n\"Hello, Goodbye\",The Beatles,\"two\r\nlines, \"\"quoted\"\"\"\r\n\
        short,row\r\n\r\nJoga,Bj\xf6rk,\r\n7\" single,\"a\"b,c\nlast,\"never\nclosed";

    fn songs(key: &[&str], value: &[&str]) -> (Vec<(String, String)>, Vec<RowError>) {
        let columns = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        read_all(&mut Csv::new(
            SONGS,
            ColumnChoice { key: columns(key), value: columns(value), header: true },
        ))
    }

    #[test]
    fn quoted_columns_are_read_and_each_bad_row_is_named_by_its_line() {
        let (rows, errors) = songs(&["title"], &["artist"]);
        assert_eq!(
            rows,
            [("Hello, Goodbye", "The Beatles"), ("Joga", "Bj\\xf6rk")].map(|(k, v)| (k.into(), v.into()))
        );
        let expected = [
            (4, "2 columns, but the first row has 3"),
            (7, "text after a closing quote"),
            (8, "unclosed quote"),
        ];
        assert_eq!(errors, expected.map(|(line, why)| RowError::Bad { line, why: why.to_owned() }));
    }

    #[test]
    fn the_rest_of_the_row_stays_csv() {
        let (rows, _) = songs(&["artist"], &[]);
        let expected = r#"\"Hello, Goodbye\",\"two\r\nlines, \"\"quoted\"\"\""#;
        assert_eq!(rows.first().map(|(_, value)| value.as_str()), Some(expected));
    }

    proptest! {
        #[test]
        fn any_columns_are_read_back_from_their_csv_text(
            first in "[a,\"\r\n ]{1,5}", columns in proptest::collection::vec("[a,\"\r\n ]{0,5}", 2..4)
        ) {
            let mut text = Vec::new();
            quote(&mut text, first.as_bytes());
            columns.iter().for_each(|column| quote(&mut text, column.as_bytes()));
            text.pop();
            let mut row = Row::default();
            prop_assert_eq!(Csv::new(&text[..], ColumnChoice::default()).next(&mut row), Ok(true));
            prop_assert_eq!(row.key, first.into_bytes());
            prop_assert_eq!(row.value, &text[text.len() - row_tail(&columns)..]);
        }
    }

    fn row_tail(columns: &[String]) -> usize {
        let mut text = Vec::new();
        columns.iter().for_each(|column| quote(&mut text, column.as_bytes()));
        text.len() - 1
    }
}
