//! The interface of every format, and their line reader.

use std::io::{self, BufRead, Read};

/// One row of the input.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Line of the input that it begins on, from 1.
    pub line: u64,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

/// Why a row could not be read.
#[derive(Debug, PartialEq, Eq)]
pub enum RowError {
    /// The line is malformed; the next one may be fine.
    Bad {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing more can be read.
    Input(String),
}

impl From<io::Error> for RowError {
    fn from(error: io::Error) -> Self {
        RowError::Input(format!("cannot read: {error}"))
    }
}

/// A file of rows.
pub trait Rows {
    /// Reads the next row into `row`; `false` at the end.
    fn next(&mut self, row: &mut Row) -> Result<bool, RowError>;
}

/// Longest line, in bytes: the largest key and value with every byte written as `\u00XX`. Without this limit,
/// a file without line ends would be read into memory whole.
pub const MAX_LINE_BYTES: usize = 6 * (sidebloom::MAX_KEY_BYTES + sidebloom::MAX_VALUE_BYTES);

/// Reads a file line by line, counting.
pub struct LineReader<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    max_bytes: usize,
    /// The byte that ends a line.
    end: u8,
    skips_mark: bool,
    refuses_nul: bool,
}

impl<R: BufRead> LineReader<R> {
    /// Reads text, skipping a UTF-8 byte-order mark at the start.
    pub fn text(input: R) -> Self {
        LineReader { skips_mark: true, ..LineReader::without_nul(input) }
    }

    /// Reads lines of text: none may have a NUL byte.
    pub fn without_nul(input: R) -> Self {
        LineReader { refuses_nul: true, ..LineReader::bytes(input) }
    }

    /// Reads lines that end in this byte.
    pub fn ending_in(input: R, end: u8) -> Self {
        LineReader { end, ..LineReader::bytes(input) }
    }

    pub fn bytes(input: R) -> Self {
        LineReader {
            input,
            line: Vec::new(),
            number: 0,
            max_bytes: MAX_LINE_BYTES,
            end: b'\n',
            skips_mark: false,
            refuses_nul: false,
        }
    }

    /// The next line without its LF, and its number. `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, RowError> {
        Ok(if self.read()? { Some((self.number, self.line())) } else { None })
    }

    /// The next line that is not blank, without its LF or CR LF.
    pub fn next_text(&mut self) -> Result<Option<(u64, &[u8])>, RowError> {
        Ok(self.next_filled()?.map(|(number, line)| (number, without_cr(line))))
    }

    /// The next line that is not blank, without its LF; a CR stays.
    pub fn next_filled(&mut self) -> Result<Option<(u64, &[u8])>, RowError> {
        while self.read()? {
            if !without_cr(self.line()).is_empty() {
                return Ok(Some((self.number, self.line())));
            }
        }
        Ok(None)
    }

    fn read(&mut self) -> Result<bool, RowError> {
        self.line.clear();
        let mut limited = (&mut self.input).take(self.max_bytes as u64 + 1);
        if limited.read_until(self.end, &mut self.line)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.line.len() > self.max_bytes {
            return Err(RowError::Input(format!(
                "line {} is longer than {} bytes",
                self.number, self.max_bytes
            )));
        }
        if self.refuses_nul && self.line.contains(&0) {
            let why = "there is a NUL byte, so this is not a line of text (--format lines takes any bytes, -0 keys that end in NUL)";
            return Err(RowError::Bad { line: self.number, why: why.to_owned() });
        }
        Ok(true)
    }

    fn line(&self) -> &[u8] {
        let line = self.line.strip_suffix(&[self.end]).unwrap_or(&self.line);
        if self.number == 1 && self.skips_mark {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        }
    }
}

/// A line without the CR of a CR LF.
pub fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// All rows of `rows`, and every error.
#[cfg(test)]
pub fn read_all(rows: &mut dyn Rows) -> (Vec<(String, String)>, Vec<RowError>) {
    let (mut read, mut errors) = (Vec::new(), Vec::new());
    let mut row = Row::default();
    loop {
        match rows.next(&mut row) {
            Ok(true) => {
                read.push([&row.key, &row.value].map(|bytes| bytes.escape_ascii().to_string()).into())
            }
            Ok(false) => return (read, errors),
            Err(error @ RowError::Bad { .. }) => errors.push(error),
            Err(error) => {
                errors.push(error);
                return (read, errors);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_ends_and_keep_their_numbers() {
        let mut lines = LineReader::text(&b"\xef\xbb\xbfa\r\n\r\n\nb\n \nc"[..]);
        let mut read = Vec::new();
        while let Some((number, line)) = lines.next_text().unwrap() {
            read.push((number, line.to_vec()));
        }
        assert_eq!(read, [(1, b"a".to_vec()), (4, b"b".to_vec()), (5, b" ".to_vec()), (6, b"c".to_vec())]);
    }

    #[test]
    fn a_line_without_end_is_refused_instead_of_read_into_memory() {
        let mut lines = LineReader::bytes(io::BufReader::new(io::repeat(b'x')));
        lines.max_bytes = 1000;
        assert!(matches!(lines.next(), Err(RowError::Input(why)) if why.contains("line 1")));
        assert!(lines.line.capacity() < 10_000);
    }
}
