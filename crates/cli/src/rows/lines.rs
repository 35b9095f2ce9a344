//! `--format lines`: each line is a key with an empty value, byte for byte as in `sidebloom filter`.

use super::source::{LineReader, Row, RowError, Rows};
use std::io::BufRead;

/// A reader of this format.
pub struct LineRows<R>(LineReader<R>);

impl<R: BufRead> LineRows<R> {
    /// Reads `input`, which is text.
    pub fn new(input: R) -> Self {
        LineRows(LineReader::without_nul(input))
    }

    /// Reads keys that end in `end` and may have any other bytes.
    pub fn ending_in(input: R, end: u8) -> Self {
        LineRows(LineReader::ending_in(input, end))
    }
}

impl<R: BufRead> Rows for LineRows<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, RowError> {
        let Some((number, line)) = self.0.next()? else { return Ok(false) };
        row.line = number;
        row.key.clear();
        row.key.extend_from_slice(line);
        row.value.clear();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::source::read_all;

    #[test]
    fn each_line_is_a_key_as_it_is() {
        let (rows, errors) = read_all(&mut LineRows::new(&b"\xef\xbb\xbfb\na\tc\r\n\n\xff"[..]));
        assert_eq!(
            rows,
            [("\\xef\\xbb\\xbfb", ""), ("a\\tc\\r", ""), ("", ""), ("\\xff", "")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
        );
        assert_eq!(errors, []);
    }
}
