//! `--format scan`: KEY TAB VALUE, or KEY alone, escaped as `sidebloom scan` prints it.

use super::escape::unescape;
use super::source::{LineReader, Row, RowError, Rows};
use std::io::BufRead;

/// A reader of this format.
pub struct Scanned<R>(LineReader<R>);

impl<R: BufRead> Scanned<R> {
    /// Reads `input`.
    pub fn new(input: R) -> Self {
        Scanned(LineReader::bytes(input))
    }
}

impl<R: BufRead> Rows for Scanned<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, RowError> {
        let Some((number, line)) = self.0.next()? else { return Ok(false) };
        let bad = |why: String| RowError::Bad { line: number, why };
        let mut columns = line.split(|&b| b == b'\t');
        let (key, value) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
        if columns.next().is_some() {
            return Err(bad("more than one TAB: a row is KEY TAB VALUE".to_owned()));
        }
        row.line = number;
        row.key = unescape(key).map_err(|why| bad(format!("key: {why}")))?;
        row.value = unescape(value).map_err(|why| bad(format!("value: {why}")))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::RowFormat;
    use crate::rows::source::read_all;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_scan_prints_is_read_back_exactly(written in proptest::collection::vec(any::<(Vec<u8>, Vec<u8>)>(), 0..8)) {
            let mut text = Vec::new();
            for (key, value) in &written {
                RowFormat::Text.write(&mut text, key, Some(value)).unwrap();
            }
            let mut rows = Scanned::new(&text[..]);
            let mut row = Row::default();
            for (key, value) in written {
                prop_assert_eq!(rows.next(&mut row), Ok(true));
                prop_assert_eq!((&row.key, &row.value), (&key, &value));
            }
            prop_assert_eq!(rows.next(&mut row), Ok(false));
        }
    }

    #[test]
    fn bad_lines_are_named_and_passed() {
        let (rows, errors) = read_all(&mut Scanned::new(&b"a\t1\nb\\q\t2\nc\t3\t4\nd\n"[..]));
        assert_eq!(rows, [("a", "1"), ("d", "")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert!(
            matches!(&errors[..], [RowError::Bad { line: 2, .. }, RowError::Bad { line: 3, .. }]),
            "{errors:?}"
        );
    }
}
