//! The rows of several files, one file after another.

use super::format::Format;
use super::input::{self, Text, is_stdin};
use crate::context::Failure;
use crate::rows::{ColumnChoice, Row, RowError, Rows, csv, jsonl, lines, scanned, tsv};
use indicatif::ProgressBar;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why there is no next row.
pub enum Stop {
    /// The rest of the current file cannot be read.
    Row(RowError),
    /// The next file cannot be opened.
    Open(Failure),
}

/// How to read the files.
pub struct Reading {
    /// `None`: the format that each file's name tells.
    pub format: Option<Format>,
    /// Whether keys in lines end in NUL.
    pub null: bool,
    /// The columns wanted.
    pub columns: ColumnChoice,
}

impl Reading {
    /// Whether lines are keys byte for byte.
    fn is_literal(&self) -> bool {
        self.null || self.format == Some(Format::Lines)
    }
}

/// The remaining files.
pub struct Files<'a> {
    reading: Reading,
    left: std::slice::Iter<'a, PathBuf>,
    path: &'a Path,
    rows: Option<(Box<dyn Rows>, ProgressBar)>,
}

impl<'a> Files<'a> {
    /// Opens the first file, and checks that the others exist.
    pub fn open(paths: &'a [PathBuf], reading: Reading) -> Result<Self, Failure> {
        for file in paths.iter().filter(|file| !is_stdin(file)) {
            let meta = std::fs::metadata(file).map_err(|e| Failure::file("open", file, e))?;
            if meta.is_dir() {
                return Err(Failure::file("read", file, ErrorKind::IsADirectory.into()));
            }
        }
        let mut files = Files { reading, left: paths.iter(), path: Path::new("-"), rows: None };
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
        let format = self.reading.format.unwrap_or_else(|| Format::of(path));
        let (text, bar) = input::open(path, format, self.reading.is_literal(), self.reading.columns.header)?;
        self.rows = Some((self.reader(format, text), bar));
        Ok(())
    }

    fn reader(&self, format: Format, text: Text) -> Box<dyn Rows> {
        let columns = self.reading.columns.clone();
        match format {
            Format::Lines if self.reading.null => Box::new(lines::LineRows::ending_in(text, 0)),
            Format::Lines if self.reading.is_literal() => Box::new(lines::LineRows::ending_in(text, b'\n')),
            Format::Lines => Box::new(lines::LineRows::new(text)),
            Format::Scan => Box::new(scanned::Scanned::new(text)),
            Format::Tsv => Box::new(tsv::Tsv::new(text, columns)),
            Format::Csv => Box::new(csv::Csv::new(text, columns)),
            Format::Jsonl => Box::new(jsonl::Jsonl::new(text, columns)),
        }
    }
}
