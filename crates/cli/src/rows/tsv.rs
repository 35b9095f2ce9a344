//! `--format tsv`: columns between TABs, without quotes or escapes.

use super::columns::{ColumnChoice, FoundColumns, join};
use super::source::{LineReader, Row, RowError, Rows};
use std::io::BufRead;

/// A reader of this format.
pub struct Tsv<R> {
    lines: LineReader<R>,
    chosen: ColumnChoice,
    layout: Option<FoundColumns>,
}

impl<R: BufRead> Tsv<R> {
    /// Reads `input`.
    pub fn new(input: R, chosen: ColumnChoice) -> Self {
        Tsv { lines: LineReader::text(input), chosen, layout: None }
    }

    /// Finds the columns in the first row, and skips it if it is a header.
    fn first_row(&mut self, row: &mut Row) -> Result<bool, RowError> {
        let Some((number, line)) = self.lines.next_text()? else { return Ok(false) };
        let columns: Vec<&[u8]> = line.split(|&b| b == b'\t').collect();
        let layout = self.chosen.find(&columns).map_err(RowError::Input)?;
        take(row, &layout, number, line)?;
        self.layout = Some(layout);
        if self.chosen.header { self.next(row) } else { Ok(true) }
    }
}

impl<R: BufRead> Rows for Tsv<R> {
    fn next(&mut self, row: &mut Row) -> Result<bool, RowError> {
        let Some(layout) = &self.layout else { return self.first_row(row) };
        let Some((number, line)) = self.lines.next_text()? else { return Ok(false) };
        take(row, layout, number, line)?;
        Ok(true)
    }
}

fn take(row: &mut Row, layout: &FoundColumns, number: u64, line: &[u8]) -> Result<(), RowError> {
    let columns: Vec<&[u8]> = line.split(|&b| b == b'\t').collect();
    layout.check(columns.len()).map_err(|why| RowError::Bad { line: number, why })?;
    row.line = number;
    join(&mut row.key, &layout.key, |i| columns.get(i).copied());
    join(&mut row.value, &layout.value, |i| columns.get(i).copied());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::source::read_all;

    const SONGS: &[u8] =
        b"artist\ttitle\tyear\nQueen\tInnuendo\t1991\nAC\\DC\tT.N.T.\nBj\xf6rk\tJoga\t1997\r\n";

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn key_columns_by_name_and_the_rest_as_value() {
        let key = ["artist", "title"].map(|name| name.parse().unwrap()).to_vec();
        let (rows, errors) =
            read_all(&mut Tsv::new(SONGS, ColumnChoice { key, value: vec![], header: true }));
        assert_eq!(rows, pairs(&[("Queen\\tInnuendo", "1991"), ("Bj\\xf6rk\\tJoga", "1997")]));
        assert_eq!(errors, [RowError::Bad { line: 3, why: "2 columns, but the first row has 3".to_owned() }]);
    }

    #[test]
    fn without_options_the_first_column_is_the_key_and_no_row_is_a_header() {
        let (rows, _) = read_all(&mut Tsv::new(&b"k\tv\tw\n\nk2\t\t\n"[..], ColumnChoice::default()));
        assert_eq!(rows, pairs(&[("k", "v\\tw"), ("k2", "\\t")]));
        let (rows, _) = read_all(&mut Tsv::new(&b""[..], ColumnChoice::default()));
        assert_eq!(rows, []);
    }
}
