//! `sidebloom load`: rows of a file into the store.

use crate::context::{Context, Failure, Outcome};
use crate::notice::notice;
use crate::rows::{Column, ColumnChoice, Row, RowError, Rows, csv, jsonl, lines, scanned, tsv};
use crate::{hex, human, progress};
use sidebloom::{Batch, Db, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Load rows from a file
///
/// Creates the store if it is missing. Rows are written in batches. A malformed line ends the load with an error that gives its
/// number; the rows before it stay loaded, except with --bulk.
///
/// Formats: `lines`: each line is a key, with an empty value. `tsv`, `csv`: columns; every row must have as many as the first.
/// `jsonl`: one JSON object per line; without --key, as `scan --json` prints them. `scan`: KEY TAB VALUE, escaped as `scan`
/// prints it.
///
/// In `lines` and `scan`, as in `sidebloom filter` and `sidebloom guard`, a line is all bytes up to LF, including any CR or
/// byte-order mark, and an empty line is the empty key. `tsv`, `csv` and `jsonl` are text: lines may end in CR LF, a byte-order
/// mark is skipped, and so are blank lines.
#[derive(clap::Args)]
pub struct Args {
    /// The file; `-` is standard input
    file: PathBuf,
    /// The file's format [default: from its extension (.txt .tsv .csv .jsonl .ndjson), else lines]
    #[arg(long)]
    format: Option<Format>,
    /// Column of the key: a number from 1, or a name from the header; for jsonl, a field that holds a string, number or boolean.
    /// May be repeated; the columns are then joined by TABs [default: column 1]
    #[arg(long, value_name = "COLUMN")]
    key: Vec<Column>,
    /// Column of the value, likewise [default: the other columns of the row, in the file's format; for jsonl, the whole line]
    #[arg(long, value_name = "COLUMN")]
    value: Vec<Column>,
    /// The first row of a tsv or csv file names its columns; implied when --key or --value is a name
    #[arg(long)]
    header: bool,
    /// Skip malformed lines; the first few are reported on standard error
    #[arg(long)]
    skip_bad: bool,
    /// Keys and values in the file are hex digits
    #[arg(long)]
    hex: bool,
    /// Do not count rows that overwrite others. Counting costs a lookup per row, which may read the disk: loading the same rows
    /// again took 2.2 times as long, and new rows cost a sixth more
    #[arg(long)]
    blind: bool,
    /// Return only when all rows are on stable storage
    #[arg(long)]
    sync: bool,
    /// Sort the rows and add all of them at once, past the log: faster for many rows. A malformed line ends the load with nothing
    /// loaded. All rows are on stable storage at the end; those that overwrote others are not counted. What does not fit into memory is sorted
    /// in temporary files beside the store's
    #[arg(long, conflicts_with_all = ["blind", "sync"])]
    bulk: bool,
}

/// Formats of files to load.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Lines,
    Tsv,
    Csv,
    Jsonl,
    Scan,
}

/// What was loaded; printed even when a bad line ended the load.
#[derive(serde::Serialize, Default)]
struct Report {
    loaded: u64,
    /// Of those, rows whose key was already present, in the store or in an earlier row. `None` with `--blind` and `--bulk`.
    overwritten: Option<u64>,
    skipped: u64,
    key_bytes: u64,
    value_bytes: u64,
    seconds: f64,
}

/// Approximate size of a batch: large enough that the log is written in large pieces, small enough that Ctrl-C loses little.
const BATCH_BYTES: usize = 256 << 10;
/// Skipped lines reported one by one.
const SKIPPED_LINES_NAMED: u64 = 10;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        let format = self.format.unwrap_or_else(|| Format::of(&self.file));
        self.check_options(format)?;
        let (input, bar) = self.open_input()?;
        let start = Instant::now();
        let mut rows = self.rows(format, Box::new(bar.wrap_read(input)))?;
        let db = cx.open_to_write(true)?;
        let counts = !self.blind && !self.bulk;
        let mut report = Report { overwritten: counts.then_some(0), ..Report::default() };
        let ended = match self.bulk {
            true => self.load_at_once(&db, &mut *rows, &mut report),
            false => self.load(&db, &mut *rows, &mut report),
        };
        bar.finish_and_clear();
        if self.sync {
            db.sync()?;
        }
        report.seconds = start.elapsed().as_secs_f64();
        cx.report(&report, |out| report.print(out))?;
        ended.map(|()| Outcome::Found)
    }

    fn check_options(&self, format: Format) -> Result<(), Failure> {
        let columns = !self.key.is_empty() || !self.value.is_empty();
        let refuse =
            |option: &str, name: &str| Err(Failure::message(format!("{option} does not apply to {name}")));
        match format {
            Format::Lines if columns => refuse("--key or --value", "--format lines"),
            Format::Scan if columns => refuse("--key or --value", "--format scan"),
            Format::Lines | Format::Scan | Format::Jsonl if self.header => {
                refuse("--header", "a file without columns")
            }
            Format::Jsonl if self.key.is_empty() && !self.value.is_empty() => {
                Err(Failure::message("--value needs --key for jsonl"))
            }
            _ => Ok(()),
        }
    }

    fn open_input(&self) -> Result<(Box<dyn Read>, indicatif::ProgressBar), Failure> {
        if self.file == Path::new("-") {
            return Ok((Box::new(std::io::stdin().lock()), progress::byte_bar("loading", None)));
        }
        let file = File::open(&self.file).map_err(|e| Failure::file("open", &self.file, e))?;
        let meta = file.metadata().map_err(|e| Failure::file("read", &self.file, e))?;
        let total = meta.is_file().then_some(meta.len());
        Ok((Box::new(file), progress::byte_bar("loading", total)))
    }

    fn rows(&self, format: Format, input: Box<dyn Read>) -> Result<Box<dyn Rows>, Failure> {
        let input = BufReader::with_capacity(1 << 18, input);
        let named = self.key.iter().chain(&self.value).any(Column::is_name);
        let chosen =
            ColumnChoice { key: self.key.clone(), value: self.value.clone(), header: self.header || named };
        Ok(match format {
            Format::Lines => Box::new(lines::LineRows::new(input)),
            Format::Scan => Box::new(scanned::Scanned::new(input)),
            Format::Tsv => Box::new(tsv::Tsv::new(input, chosen)),
            Format::Csv => Box::new(csv::Csv::new(input, chosen)),
            Format::Jsonl => Box::new(jsonl::Jsonl::new(input, chosen)),
        })
    }

    fn load(&self, db: &Db, rows: &mut dyn Rows, report: &mut Report) -> Result<(), Failure> {
        let mut pending = PendingBatch::default();
        let mut row = Row::default();
        loop {
            match self.next(rows, &mut row, report) {
                Ok(true) => {
                    if !self.blind {
                        pending.look_up(db, &row)?;
                    }
                    pending.add(&row);
                }
                Ok(false) => return pending.write(db, report),
                Err(error) => {
                    pending.write(db, report)?;
                    return Err(self.failure(error, report.loaded));
                }
            }
            if pending.bytes >= BATCH_BYTES {
                pending.write(db, report)?;
            }
        }
    }

    /// Loads all rows or none.
    fn load_at_once(&self, db: &Db, rows: &mut dyn Rows, report: &mut Report) -> Result<(), Failure> {
        let (mut read, mut failure) = (Report::default(), None);
        let good = std::iter::from_fn(|| {
            let mut row = Row::default();
            match self.next(rows, &mut row, &mut read) {
                Ok(true) => {
                    read.loaded += 1;
                    read.key_bytes += row.key.len() as u64;
                    read.value_bytes += row.value.len() as u64;
                    Some(Ok((row.key, row.value)))
                }
                Ok(false) => None,
                Err(error) => {
                    failure = Some(self.failure(error, 0));
                    Some(Err(sidebloom::Error::InvalidArgument("a row cannot be read".into()))) // `failure` says why.
                }
            }
        });
        let done = db.ingest_unsorted(good);
        report.skipped = read.skipped;
        failure.map_or(Ok(()), Err)?;
        done?;
        *report = read;
        Ok(())
    }

    /// Reads the next row; `false` at the end. Skips malformed lines if asked to.
    fn next(&self, rows: &mut dyn Rows, row: &mut Row, report: &mut Report) -> Result<bool, RowError> {
        loop {
            let read = rows.next(row).and_then(|more| match more {
                true => self.check(row).map(|()| true),
                false => Ok(false),
            });
            match read {
                Err(RowError::Bad { line, why }) if self.skip_bad => {
                    report.skipped += 1;
                    self.name_skipped(report.skipped, line, &why);
                }
                read => return read,
            }
        }
    }

    /// Decodes hex digits if asked to, and checks sizes here, where the line number is known.
    fn check(&self, row: &mut Row) -> Result<(), RowError> {
        let line = row.line;
        let bad = |why: String| RowError::Bad { line, why };
        if self.hex {
            row.key = hex::decode(&row.key).map_err(|why| bad(format!("key: {why}")))?;
            row.value = hex::decode(&row.value).map_err(|why| bad(format!("value: {why}")))?;
        }
        let too_large = |name: &str, len: usize, max: usize| {
            if len > max {
                Err(bad(format!("{name} too large: {len} bytes (at most {max})")))
            } else {
                Ok(())
            }
        };
        too_large("key", row.key.len(), MAX_KEY_BYTES)?;
        too_large("value", row.value.len(), MAX_VALUE_BYTES)
    }

    fn name_skipped(&self, nth: u64, line: u64, why: &str) {
        match nth {
            n if n <= SKIPPED_LINES_NAMED => {
                notice(format_args!("{}: line {line}: {why}; skipped", self.file.display()))
            }
            n if n == SKIPPED_LINES_NAMED + 1 => {
                notice("further malformed lines are skipped without a message")
            }
            _ => {}
        }
    }

    fn failure(&self, error: RowError, loaded: u64) -> Failure {
        let file = self.file.display();
        let loaded = human::count(loaded);
        let (before, in_all) = match self.bulk {
            true => ("no row was loaded".into(), "no row was loaded".into()),
            false => {
                (format!("the {loaded} rows before it were loaded"), format!("{loaded} rows were loaded"))
            }
        };
        match error {
            RowError::Bad { line, why } => Failure::message(format!(
                "{file}: line {line}: {why}; {before} (--skip-bad skips such lines)"
            )),
            RowError::Input(why) => Failure::message(format!("{file}: {why}; {in_all}")),
        }
    }
}

impl Format {
    fn of(file: &Path) -> Self {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("tsv" | "tab") => Format::Tsv,
            Some("csv") => Format::Csv,
            Some("jsonl" | "ndjson" | "json") => Format::Jsonl,
            _ => Format::Lines,
        }
    }
}

/// Rows that are read but not yet written.
#[derive(Default)]
struct PendingBatch {
    batch: Batch,
    keys: HashSet<Vec<u8>>,
    rows: u64,
    overwritten: u64,
    key_bytes: usize,
    bytes: usize,
}

impl PendingBatch {
    /// Counts the row if its key is already present.
    fn look_up(&mut self, db: &Db, row: &Row) -> Result<(), Failure> {
        self.overwritten += u64::from(!self.keys.insert(row.key.clone()) || db.contains_key(&row.key)?);
        Ok(())
    }

    fn add(&mut self, row: &Row) {
        self.batch.put(&row.key, &row.value);
        self.rows += 1;
        self.key_bytes += row.key.len();
        self.bytes += row.key.len() + row.value.len();
    }

    fn write(&mut self, db: &Db, report: &mut Report) -> Result<(), Failure> {
        let written = std::mem::take(self);
        db.write(written.batch)?;
        report.loaded += written.rows;
        if let Some(overwritten) = &mut report.overwritten {
            *overwritten += written.overwritten;
        }
        report.key_bytes += written.key_bytes as u64;
        report.value_bytes += (written.bytes - written.key_bytes) as u64;
        Ok(())
    }
}

impl Report {
    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let bytes = human::bytes((self.key_bytes + self.value_bytes) as f64);
        write!(out, "loaded {} rows, {bytes}, in {:.1} s", human::count(self.loaded), self.seconds)?;
        if let Some(overwritten @ 1..) = self.overwritten {
            write!(out, "; {} of them overwrote an earlier row", human::count(overwritten))?;
        }
        if self.skipped > 0 {
            write!(out, "; skipped {} malformed lines", human::count(self.skipped))?;
        }
        Ok(writeln!(out)?)
    }
}
