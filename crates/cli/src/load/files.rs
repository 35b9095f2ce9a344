//! The rows of several files, one file after another.

use super::Args;
use super::format::Format;
use super::input::{self, Text, is_stdin};
use crate::context::Failure;
use crate::rows::{Row, RowError, Rows, csv, jsonl, lines, scanned, tsv};
use indicatif::ProgressBar;
use std::io::ErrorKind;
use std::path::Path;

/// Why there is no next row.
pub enum Stop {
    /// The current file cannot be read on.
    Row(RowError),
    /// The next one cannot be opened.
    Open(Failure),
}

/// The files that are left.
pub struct Files<'a> {
    args: &'a Args,
    left: std::slice::Iter<'a, std::path::PathBuf>,
    path: &'a Path,
    rows: Option<(Box<dyn Rows>, ProgressBar)>,
}

impl<'a> Files<'a> {
    /// Opens the first file, and sees that the others are there.
    pub fn open(args: &'a Args) -> Result<Self, Failure> {
        for file in args.files.iter().filter(|file| !is_stdin(file)) {
            let meta = std::fs::metadata(file).map_err(|e| Failure::file("open", file, e))?;
            if meta.is_dir() {
                return Err(Failure::file("read", file, ErrorKind::IsADirectory.into()));
            }
        }
        let mut files = Files { args, left: args.files.iter(), path: Path::new("-"), rows: None };
        files.open_next()?;
        Ok(files)
    }

    /// The file that the last row or error came from.
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Reads the next row; `false` after the last file.
    pub fn next(&mut self, row: &mut Row) -> Result<bool, Stop> {
        while let Some((rows, _)) = &mut self.rows {
            if rows.next(row).map_err(Stop::Row)? {
                return Ok(true);
            }
            self.open_next().map_err(Stop::Open)?;
        }
        Ok(false)
    }

    /// Removes the progress bar.
    pub fn finish(&mut self) {
        if let Some((_, bar)) = self.rows.take() {
            bar.finish_and_clear();
        }
    }

    fn open_next(&mut self) -> Result<(), Failure> {
        self.finish();
        let Some(path) = self.left.next() else { return Ok(()) };
        self.path = path;
        let (format, columns) = (self.args.format_of(path), self.args.columns());
        let (text, bar) = input::open(path, format, self.args.is_literal(), columns.header)?;
        self.rows = Some((self.reader(format, text), bar));
        Ok(())
    }

    fn reader(&self, format: Format, text: Text) -> Box<dyn Rows> {
        let columns = self.args.columns();
        match format {
            Format::Lines if self.args.null => Box::new(lines::LineRows::ending_in(text, 0)),
            Format::Lines if self.args.is_literal() => Box::new(lines::LineRows::ending_in(text, b'\n')),
            Format::Lines => Box::new(lines::LineRows::new(text)),
            Format::Scan => Box::new(scanned::Scanned::new(text)),
            Format::Tsv => Box::new(tsv::Tsv::new(text, columns)),
            Format::Csv => Box::new(csv::Csv::new(text, columns)),
            Format::Jsonl => Box::new(jsonl::Jsonl::new(text, columns)),
        }
    }
}
