//! Which columns are the key and the value.

use std::convert::Infallible;
use std::str::FromStr;

/// A column as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Its position, from 1.
    Number(usize),
    /// Its name in the header, or a field of a JSON object.
    Name(String),
}

impl FromStr for Column {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.parse() {
            Ok(number) if number > 0 => Column::Number(number),
            _ => Column::Name(text.to_owned()),
        })
    }
}

impl Column {
    /// Whether it needs a header.
    pub fn is_name(&self) -> bool {
        matches!(self, Column::Name(_))
    }

    /// Its name. Where columns have only names, a number is a name too.
    pub fn name(&self) -> String {
        match self {
            Column::Number(number) => number.to_string(),
            Column::Name(name) => name.clone(),
        }
    }

    /// Its index among the columns of a row, from 0.
    fn index(&self, width: usize, header: Option<&[&[u8]]>) -> Result<usize, String> {
        let wanted = self.name();
        let found: Vec<usize> = header
            .unwrap_or_default()
            .iter()
            .enumerate()
            .filter_map(|(index, name)| (*name == wanted.as_bytes()).then_some(index))
            .collect();
        if let [first, second, ..] = &found[..] {
            return Err(format!(
                "the header has the column {wanted:?} more than once, as columns {} and {}: without names, columns can be chosen by number",
                first + 1,
                second + 1
            ));
        }
        match (found.first().copied(), self) {
            (Some(index), _) => Ok(index),
            (None, Column::Number(number)) if *number <= width => Ok(number - 1),
            (None, Column::Number(number)) => {
                Err(format!("there is no column {number}: the first row has {width} columns"))
            }
            (None, Column::Name(name)) => {
                let names = header.unwrap_or_default().iter().map(|name| String::from_utf8_lossy(name));
                Err(format!(
                    "there is no column {name:?}: the header has {}",
                    names.collect::<Vec<_>>().join(", ")
                ))
            }
        }
    }
}

/// The options `--key`, `--value` and `--header`.
#[derive(Debug, Clone, Default)]
pub struct ColumnChoice {
    /// The key's columns; empty for the format's default.
    pub key: Vec<Column>,
    /// The value's columns; empty for the format's default.
    pub value: Vec<Column>,
    /// Whether the first row names the columns.
    pub header: bool,
}

/// [`ColumnChoice`], found in the first row.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundColumns {
    /// Columns of every row.
    pub width: usize,
    /// Indexes of the key's columns, from 0.
    pub key: Vec<usize>,
    /// Indexes of the value's columns, from 0.
    pub value: Vec<usize>,
    /// Whether the value is the rest of the row, kept in the file's format.
    pub value_is_rest: bool,
}

impl ColumnChoice {
    /// Finds the columns, given the first row.
    pub fn find(&self, first_row: &[&[u8]]) -> Result<FoundColumns, String> {
        let width = first_row.len();
        let header = self.header.then_some(first_row);
        let indexes = |columns: &[Column]| {
            columns.iter().map(|column| column.index(width, header)).collect::<Result<Vec<_>, _>>()
        };
        let key = if self.key.is_empty() { vec![0] } else { indexes(&self.key)? };
        let value_is_rest = self.value.is_empty();
        let value = if value_is_rest {
            (0..width).filter(|index| !key.contains(index)).collect()
        } else {
            indexes(&self.value)?
        };
        Ok(FoundColumns { width, key, value, value_is_rest })
    }
}

impl FoundColumns {
    /// Checks that a row has as many columns as the first one.
    pub fn check(&self, width: usize) -> Result<(), String> {
        if width == self.width {
            Ok(())
        } else {
            Err(format!("{width} columns, but the first row has {}", self.width))
        }
    }
}

/// Writes the chosen columns of a row to `bytes`, joined by TABs.
pub fn join<'a>(bytes: &mut Vec<u8>, chosen: &[usize], column: impl Fn(usize) -> Option<&'a [u8]>) {
    bytes.clear();
    for (i, &index) in chosen.iter().enumerate() {
        if i > 0 {
            bytes.push(b'\t');
        }
        bytes.extend_from_slice(column(index).unwrap_or_default());
    }
}

/// Refuses a key of several columns one of which contains a TAB: other columns could give the same key.
pub fn check_key(key: &[u8], columns: usize) -> Result<(), String> {
    if columns > 1 && key.iter().filter(|byte| **byte == b'\t').count() >= columns {
        return Err("a column of the key contains a TAB, which is what joins the columns".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(key: &[&str], value: &[&str], header: bool) -> ColumnChoice {
        let columns = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        ColumnChoice { key: columns(key), value: columns(value), header }
    }

    const FIRST: [&[u8]; 3] = [b"artist", b"title", b"1"];

    #[test]
    fn columns_are_found_by_number_and_by_name() {
        let layout = |key: &[&str], value: &[&str], header| {
            chosen(key, value, header).find(&FIRST).map(|l| (l.key, l.value, l.value_is_rest))
        };
        assert_eq!(layout(&[], &[], false), Ok((vec![0], vec![1, 2], true)));
        assert_eq!(layout(&["3", "2"], &[], false), Ok((vec![2, 1], vec![0], true)));
        assert_eq!(layout(&["title"], &["artist"], true), Ok((vec![1], vec![0], false)));
        // A header that names a column "1" wins over the position.
        assert_eq!(layout(&["1"], &["2"], true), Ok((vec![2], vec![1], false)));
    }

    #[test]
    fn a_column_that_occurs_twice_in_the_header_is_refused() {
        let twice: [&[u8]; 3] = [b"title", b"artist", b"title"];
        let why = chosen(&["title"], &[], true).find(&twice).unwrap_err();
        assert!(why.contains("\"title\" more than once, as columns 1 and 3"), "{why}");
        assert!(chosen(&["artist"], &["title"], true).find(&twice).is_err());
        assert!(chosen(&["artist"], &[], true).find(&twice).is_ok());
    }

    #[test]
    fn a_column_that_is_not_there_is_named() {
        let why = |key: &[&str], header| chosen(key, &[], header).find(&FIRST).unwrap_err();
        assert!(why(&["4"], false).contains("no column 4"));
        assert!(why(&["year"], true).contains("artist, title, 1"));
        assert!(why(&["0"], true).contains("\"0\""));
    }
}
