//! Keys that are columns of lines, found by the readers of `sidebloom load`.

use crate::context::Failure;
use crate::load::format::Format;
use crate::rows::{ColumnChoice, Row, RowError, Rows, csv, jsonl, tsv};
use sidebloom::MAX_KEY_BYTES;
use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// A reader of rows that gets its file line by line.
pub struct KeyColumns {
    next_line: Rc<RefCell<Vec<u8>>>,
    rows: Box<dyn Rows>,
    row: Row,
}

impl KeyColumns {
    /// For the lines of one file. Those of no other format are tsv.
    pub fn new(format: Format, chosen: ColumnChoice) -> Result<Self, Failure> {
        let next_line = Rc::default();
        let feed = Feed { next_line: Rc::clone(&next_line), line: Vec::new(), read: 0 };
        let rows: Box<dyn Rows> = match format {
            Format::Csv => Box::new(csv::Csv::new(feed, chosen)),
            Format::Jsonl if !chosen.header => Box::new(jsonl::Jsonl::new(feed, chosen)),
            Format::Jsonl => return Err(Failure::message("--header does not apply to jsonl")),
            Format::Tsv | Format::Lines | Format::Scan => Box::new(tsv::Tsv::new(feed, chosen)),
        };
        Ok(KeyColumns { next_line, rows, row: Row::default() })
    }

    /// The key in the file's next line. `None` for a header and a blank line.
    pub fn key_of(&mut self, line: &[u8]) -> Result<Option<&[u8]>, RowError> {
        {
            let mut next = self.next_line.borrow_mut();
            next.extend_from_slice(line);
            next.push(b'\n');
        }
        if !self.rows.next(&mut self.row)? {
            return Ok(None);
        }
        let (line, bytes) = (self.row.line, self.row.key.len());
        if bytes > MAX_KEY_BYTES {
            let why = format!("key too large: {bytes} bytes (at most {MAX_KEY_BYTES})");
            return Err(RowError::Bad { line, why });
        }
        Ok(Some(&self.row.key))
    }
}

/// A file of which one line has come so far.
struct Feed {
    next_line: Rc<RefCell<Vec<u8>>>,
    line: Vec<u8>,
    read: usize,
}

impl BufRead for Feed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.line.len() {
            self.line.clear();
            self.read = 0;
            std::mem::swap(&mut self.line, &mut self.next_line.borrow_mut());
        }
        Ok(self.line.get(self.read..).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.read += bytes;
    }
}

impl Read for Feed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?.read(into)?;
        self.consume(bytes);
        Ok(bytes)
    }
}
