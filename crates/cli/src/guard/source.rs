//! The source of a guard's keys: `--sqlite`, `--postgres` or `--lines`.

use crate::context::Failure;
use crate::filter::input::InputLines;
use crate::progress;
use indicatif::ProgressBar;
use sidebloom::guard::{Canonical, Change, Source};
use sidebloom::{Error, Result};
use std::path::PathBuf;

/// Which database or file has the keys.
#[derive(clap::Args)]
pub struct Named {
    #[command(flatten)]
    from: From,
    /// Lines end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
    /// The table that has the keys; in PostgreSQL also SCHEMA.TABLE
    #[arg(long, value_name = "TABLE", conflicts_with = "lines")]
    table: Option<String>,
    /// The column of the keys; rows without one (NULL) are skipped
    #[arg(long, value_name = "COLUMN", conflicts_with = "lines")]
    column: Option<String>,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct From {
    /// A SQLite database (needs a build with the feature sqlite)
    #[arg(long, value_name = "FILE", requires = "table", requires = "column")]
    sqlite: Option<PathBuf>,
    /// A PostgreSQL server, as postgres://USER@HOST/DATABASE or "host=/run/postgresql dbname=…"; PGPASSWORD
    /// can give the password instead. TLS parameters are libpq's: ?sslmode=verify-full&sslrootcert=FILE
    /// (needs a build with the feature postgres)
    #[arg(long, value_name = "URL", requires = "table", requires = "column")]
    postgres: Option<String>,
    /// A file with one key per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
}

impl Named {
    /// Opens it, with a progress bar that counts its rows.
    pub fn open(&self, label: &str) -> Result<Watched, Failure> {
        if self.null && self.from.lines.is_none() {
            return Err(Failure::message("--null needs --lines"));
        }
        let (table, column) =
            (self.table.as_deref().unwrap_or_default(), self.column.as_deref().unwrap_or_default());
        let source: Box<dyn Source> = match &self.from {
            From { sqlite: Some(file), .. } => sqlite(file, table, column)?,
            From { postgres: Some(url), .. } => postgres(url, table, column)?,
            From { lines, .. } => {
                let lines = lines.clone().unwrap_or_else(|| PathBuf::from("-"));
                let source = FromLines { lines, null: self.null, label: label.into() };
                return Ok(Watched { source: Box::new(source), bar: None });
            }
        };
        Ok(Watched { source, bar: Some(progress::counter(label)) })
    }
}

#[cfg(feature = "sqlite")]
fn sqlite(file: &std::path::Path, table: &str, column: &str) -> Result<Box<dyn Source>, Failure> {
    Ok(Box::new(sidebloom_sqlite::SqliteSource::open(file, table, column)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &std::path::Path, _: &str, _: &str) -> Result<Box<dyn Source>, Failure> {
    Err(Failure::not_built_in("SQLite", "sqlite"))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str, table: &str, column: &str) -> Result<Box<dyn Source>, Failure> {
    Ok(Box::new(sidebloom_postgres::PostgresSource::connect(url, table, column)?))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str, _: &str, _: &str) -> Result<Box<dyn Source>, Failure> {
    Err(Failure::not_built_in("PostgreSQL", "postgres"))
}

/// A source with a bar that counts its rows.
pub struct Watched {
    source: Box<dyn Source>,
    /// `None` if the source has its own.
    bar: Option<ProgressBar>,
}

/// Rows between two moves of the bar.
const BAR_STEP: u64 = 1 << 14;

impl Source for Watched {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(bar) = &self.bar else { return self.source.stream(visit) };
        let mut rows = 0u64;
        let streamed = self.source.stream(&mut |key| {
            rows += 1;
            if rows.is_multiple_of(BAR_STEP) {
                bar.set_position(rows);
            }
            visit(key)
        });
        bar.finish_and_clear();
        streamed
    }

    fn count(&mut self, key: &[u8]) -> Result<u64> {
        self.source.count(key)
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> Result<()> {
        self.source.apply(changes)
    }

    fn equality(&self) -> Canonical {
        self.source.equality()
    }

    /// The note may hold a position in another database's changes, so it is replaced by an empty one.
    fn note(&self) -> Option<Vec<u8>> {
        Some(self.source.note().unwrap_or_default())
    }
}

/// Lines of a file. They cannot be queried or changed later.
struct FromLines {
    lines: PathBuf,
    null: bool,
    label: String,
}

impl FromLines {
    fn failed(&self, failure: &Failure) -> Error {
        Error::Database { name: self.lines.display().to_string(), what: failure.to_string() }
    }
}

impl Source for FromLines {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let lines = InputLines::open(&self.lines, &self.label).map_err(|failure| self.failed(&failure))?;
        let mut lines = lines.ending_in_nul(self.null);
        while let Some(line) = lines.next().map_err(|failure| self.failed(&failure))? {
            visit(line)?;
        }
        Ok(())
    }

    fn count(&mut self, _: &[u8]) -> Result<u64> {
        Err(self.failed(&Failure::message("lines cannot be queried for a key")))
    }

    fn apply(&mut self, _: &[Change<'_>]) -> Result<()> {
        Err(self.failed(&Failure::message("lines cannot be changed")))
    }
}
