//! `sidebloom load`: rows of files into the store.

mod batch;
mod files;
pub mod format;
mod input;
mod sniff;

use crate::context::{Context, Failure, Outcome};
use crate::human::parse_lifetime;
use crate::keyspace_arg::KeyspaceArg;
use crate::notice::notice;
use crate::rows::{Column, ColumnChoice, Row, RowError};
use crate::{hex, human, progress};
use batch::{PendingBatch, Report};
use files::{Files, Reading, Stop};
use format::Format;
use sidebloom::{Keyspace, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Load rows from files
///
/// Creates the store if it is missing, but no keyspace. Rows are written in batches, in the order of the
/// files. A malformed line ends the load with an error that gives its number; the rows before it stay
/// loaded, except with --bulk. Files compressed with gzip (or zstd, if built with the feature zstd) are
/// decompressed. Archives, UTF-16 and other files that are not text are refused.
///
/// Formats: `lines`: each line is a key, with an empty value. `tsv`, `csv`: columns; every row must have as
/// many as the first. `jsonl`: one JSON object per line; without --key, as `scan --json` prints them. `scan`:
/// KEY TAB VALUE, escaped as `scan` prints it.
///
/// In `lines` and `scan`, as in `sidebloom filter` and `sidebloom guard`, a line is all bytes up to LF,
/// including any CR or byte-order mark, and an empty line is the empty key. `tsv`, `csv` and `jsonl` are
/// text: lines may end in CR LF, and a byte-order mark and blank lines are skipped. A line with a NUL byte is
/// malformed, except with --format lines.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// The files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The files' format [default: from each file's extension (.txt .tsv .csv .jsonl .ndjson, then optionally
    /// .gz or .zst), else lines]
    #[arg(long)]
    format: Option<Format>,
    /// In lines, keys end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
    /// Column of the key: a number from 1, or a name from the header; for jsonl, a field that holds a string,
    /// number or boolean. May be repeated; the columns are then joined by TABs, and none may contain one
    /// [default: column 1]
    #[arg(long, value_name = "COLUMN")]
    key: Vec<Column>,
    /// Column of the value, likewise [default: the other columns of the row, in the file's format; for jsonl,
    /// the whole line]
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
    /// Do not count overwritten rows. Counting costs a lookup per row, which may read the disk: loading the
    /// same rows again took 2.2 times as long, and new rows took a sixth longer
    #[arg(long)]
    blind: bool,
    /// The rows expire after this time, such as 90m, 24h or 7d
    #[arg(long = "for", value_name = "TIME", value_parser = parse_lifetime, conflicts_with = "bulk")]
    lifetime: Option<Duration>,
    /// Return only when all rows are on stable storage
    #[arg(long)]
    sync: bool,
    /// Sort the rows and add them all at once, bypassing the log: faster for many rows. A malformed line ends
    /// the load with nothing loaded. At the end, all rows are on stable storage; overwritten rows are not
    /// counted. Rows that do not fit into memory are sorted in temporary files next to the store's
    #[arg(long, conflicts_with_all = ["blind", "sync"])]
    bulk: bool,
}

/// Approximate size of a batch: large enough for large log writes, small enough for Ctrl-C to lose little.
const BATCH_BYTES: usize = 256 << 10;
/// Skipped lines reported one by one.
const SKIPPED_LINES_NAMED: u64 = 10;

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        for file in &self.files {
            self.check_options(file)?;
        }
        if self.files.iter().filter(|file| input::is_stdin(file)).count() > 1 {
            return Err(Failure::message("standard input (-) can be read only once"));
        }
        let start = Instant::now();
        // Inspect the file before creating the store. A slow pipe would keep the store open.
        let is_pipe = self.files.first().is_some_and(|file| input::is_pipe(file));
        let opened = (!is_pipe).then(|| Files::open(&self.files, self.reading())).transpose()?;
        let db = self.keyspace.open_to_write(cx, true)?;
        let mut files = opened.map_or_else(|| Files::open(&self.files, self.reading()), Ok)?;
        let counts = !self.blind && !self.bulk;
        let mut report = Report { overwritten: counts.then_some(0), ..Report::default() };
        let ended = if self.bulk {
            self.load_at_once(&db, &mut files, &mut report)
        } else {
            self.load(&db, &mut files, &mut report)
        };
        files.finish();
        if self.sync {
            db.sync()?;
        }
        let closed = db.close();
        report.seconds = start.elapsed().as_secs_f64();
        if ended.is_ok() {
            closed?; // Do not count rows that were lost.
        }
        if ended.is_ok() || report.loaded > 0 || report.skipped > 0 {
            cx.report(&report, |out| report.print(out))?;
        }
        ended.map(|()| Outcome::Found)
    }

    fn check_options(&self, file: &Path) -> Result<(), Failure> {
        let format = self.format.unwrap_or_else(|| Format::of(file));
        let refuse = |option: &str| {
            let what = match self.format {
                Some(format) => format!("--format {}", format.name()),
                None if input::is_stdin(file) => {
                    "standard input, read as lines: give its --format".to_owned()
                }
                None => format!(
                    "{}, read as {} because of its name: give its --format",
                    file.display(),
                    format.name()
                ),
            };
            Err(Failure::message(format!("{option} does not apply to {what}")))
        };
        match format {
            Format::Lines | Format::Scan if !self.key.is_empty() => refuse("--key"),
            Format::Lines | Format::Scan if !self.value.is_empty() => refuse("--value"),
            Format::Lines | Format::Scan | Format::Jsonl if self.header => refuse("--header"),
            Format::Jsonl if self.key.is_empty() && !self.value.is_empty() => {
                Err(Failure::message("--value needs --key for jsonl"))
            }
            Format::Tsv | Format::Csv | Format::Jsonl | Format::Scan if self.null => refuse("--null"),
            _ => Ok(()),
        }
    }

    fn reading(&self) -> Reading {
        let named = self.key.iter().chain(&self.value).any(Column::is_name);
        let columns =
            ColumnChoice { key: self.key.clone(), value: self.value.clone(), header: self.header || named };
        Reading { format: self.format, null: self.null, columns }
    }

    fn load(&self, db: &Keyspace, rows: &mut Files<'_>, report: &mut Report) -> Result<(), Failure> {
        let mut pending = PendingBatch::default();
        let mut row = Row::default();
        loop {
            match self.next(rows, &mut row, report) {
                Ok(true) => {
                    if !self.blind {
                        pending.look_up(db, &row)?;
                    }
                    pending.add(db, &row, self.lifetime);
                }
                Ok(false) => return pending.write(db, report),
                Err(error) => {
                    pending.write(db, report)?;
                    return Err(self.failure(rows.path(), error, report.loaded));
                }
            }
            if pending.bytes >= BATCH_BYTES {
                pending.write(db, report)?;
            }
        }
    }

    /// Loads all rows or none.
    fn load_at_once(&self, db: &Keyspace, rows: &mut Files<'_>, report: &mut Report) -> Result<(), Failure> {
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
                    failure = Some(self.failure(rows.path(), error, 0));
                    // `failure` says why.
                    Some(Err(sidebloom::Error::InvalidArgument("a row cannot be read".into())))
                }
            }
        });
        let writing = OnceCell::new();
        let done = db.ingest_unsorted_with(good, |so_far| {
            if so_far.bytes_left.is_some() {
                // All rows were read.
                progress::show(writing.get_or_init(|| progress::work_bar("sorting and writing")), so_far);
            }
        });
        writing.get().iter().for_each(|bar| bar.finish_and_clear());
        report.skipped = read.skipped;
        failure.map_or(Ok(()), Err)?;
        done?;
        *report = read;
        Ok(())
    }

    /// Reads the next row; `false` at the end. Skips malformed lines if asked to.
    fn next(&self, rows: &mut Files<'_>, row: &mut Row, report: &mut Report) -> Result<bool, Stop> {
        loop {
            let read = rows.next(row).and_then(|more| {
                if more { self.check(row).map(|()| true).map_err(Stop::Row) } else { Ok(false) }
            });
            match read {
                Err(Stop::Row(RowError::Bad { line, why })) if self.skip_bad => {
                    report.skipped += 1;
                    name_skipped(rows.path(), report.skipped, line, &why);
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

    fn failure(&self, file: &Path, error: Stop, loaded: u64) -> Failure {
        let file = file.display();
        let loaded = human::count(loaded);
        let (before, in_all) = if self.bulk {
            ("no row was loaded".into(), "no row was loaded".into())
        } else {
            (format!("the {loaded} rows before it were loaded"), format!("{loaded} rows were loaded"))
        };
        match error {
            Stop::Row(RowError::Bad { line, why }) => Failure::message(format!(
                "{file}: line {line}: {why}; {before} (--skip-bad skips such lines)"
            )),
            Stop::Row(RowError::Input(why)) => Failure::message(format!("{file}: {why}; {in_all}")),
            Stop::Open(failure) => Failure::message(format!("{failure}; {in_all}")),
        }
    }
}

fn name_skipped(file: &Path, nth: u64, line: u64, why: &str) {
    match nth {
        n if n <= SKIPPED_LINES_NAMED => {
            notice(format_args!("{}: line {line}: {why}; skipped", file.display()))
        }
        n if n == SKIPPED_LINES_NAMED + 1 => notice("further malformed lines are skipped without a message"),
        _ => {}
    }
}
