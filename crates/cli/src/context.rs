//! What every command gets (the store's path, the output), and how it ends.

use crate::holder;
use crate::url::url_of;
use crate::wait::Wait;
use sidebloom::{Db, Error, Options, PrefixExtractor, show};
use std::cell::{RefCell, RefMut};
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};

/// The outcome of a command that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Found,
    /// Exit code 1.
    NotFound,
}

impl Outcome {
    /// `Found` when `found`.
    pub fn found(found: bool) -> Self {
        if found { Outcome::Found } else { Outcome::NotFound }
    }
}

/// Why a command failed. The exit code is 2, except after a closed pipe.
#[derive(Debug)]
pub enum Failure {
    /// The store returned an error.
    Store(sidebloom::Error),
    /// Writing to standard output failed.
    Output(io::Error),
    File {
        /// A verb: "read", "create", …
        op: &'static str,
        /// The file, or `-` for standard input.
        path: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The arguments make no sense together, or the input is malformed.
    Message(String),
}

impl Failure {
    /// A failure described by `text`.
    pub fn message(text: impl Into<String>) -> Self {
        Failure::Message(text.into())
    }

    /// The command needs a feature that this build lacks.
    #[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "remote", feature = "slatedb")))]
    pub fn not_built_in(what: &str, feature: &str) -> Self {
        Failure::message(format!(
            "this sidebloom was built without {what} support; build it again with `--features {feature}`"
        ))
    }

    /// Wraps an operating-system error of a file that is not the store's.
    pub fn file(op: &'static str, path: &Path, source: io::Error) -> Self {
        Failure::File { op, path: path.to_path_buf(), source }
    }

    /// Whether the reader of standard output went away. It has seen all it wanted.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Output(error) => write!(f, "cannot write to standard output: {error}"),
            Failure::File { op, path, source } => write!(f, "cannot {op} {}: {source}", show::path(path)),
            Failure::Message(text) => f.write_str(text),
        }
    }
}

impl From<sidebloom::Error> for Failure {
    fn from(error: sidebloom::Error) -> Self {
        Failure::Store(error)
    }
}

#[cfg(feature = "remote")]
impl From<sidebloom_remote::Error> for Failure {
    fn from(error: sidebloom_remote::Error) -> Self {
        Failure::Message(error.to_string())
    }
}

impl From<sidebloom::filter::Error> for Failure {
    fn from(error: sidebloom::filter::Error) -> Self {
        Failure::Store(error.into())
    }
}

/// Only writing to standard output uses `?` on an `io::Error`; other files go through [`Failure::file`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// The global options.
pub struct Context {
    /// The store's directory, or the URL where it is published.
    pub db: PathBuf,
    /// Whether `--db` was given on the command line, rather than through the environment.
    pub db_named: bool,
    /// JSON instead of text on standard output.
    pub json: bool,
    /// The prefixes that the store's filters cover.
    prefixes: Vec<PrefixExtractor>,
    /// Whether to wait for what another process has open.
    wait: Option<Wait>,
    /// Cache directory of a published store.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "no published store is read without it"))]
    pub remote_cache: Option<PathBuf>,
    out: RefCell<BufWriter<Stdout>>,
}

impl Context {
    /// From the parsed options.
    pub fn new(
        db: PathBuf,
        db_named: bool,
        json: bool,
        prefixes: Vec<PrefixExtractor>,
        wait: Option<Wait>,
        remote_cache: Option<PathBuf>,
    ) -> Self {
        let out = RefCell::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        Context { db, db_named, json, prefixes, wait, remote_cache, out }
    }

    /// The URL that was given instead of a directory.
    pub fn url(&self) -> Option<&str> {
        url_of(self.db.as_os_str())
    }

    /// The store's directory or URL, as it is shown.
    pub fn place(&self) -> String {
        self.url().map_or_else(|| show::path(&self.db), show::url)
    }

    /// The store's directory, for commands that do not read what is published at a URL.
    pub fn local_db(&self) -> Result<&Path, Failure> {
        match self.url() {
            Some(url) => Err(Failure::message(format!(
                "{} is a URL: a published store is read-only: use get, scan, stats, verify, export or seen --check, or give a directory, such as one made by clone",
                show::url(url)
            ))),
            None => Ok(&self.db),
        }
    }

    /// Opens the store for writing; with `create`, creates a missing one.
    pub fn open_to_write(&self, create: bool) -> Result<Db, Failure> {
        let dir = self.local_db()?;
        self.opening(|| self.options().create_if_missing(create).open(dir))
    }

    /// Opens a store or a guard; with `--wait`, as soon as no other process has it.
    pub fn opening<T>(&self, mut open: impl FnMut() -> sidebloom::Result<T>) -> Result<T, Failure> {
        let opened = match self.wait {
            Some(wait) => wait.retry(open),
            None => open(),
        };
        opened.map_err(|error| match &error {
            Error::Locked { path } => {
                let holder =
                    holder::of(path).map_or(String::new(), |holder| format!("{holder} has it open; "));
                Failure::message(format!("{error}; {holder}--wait waits until it is closed"))
            }
            _ => error.into(),
        })
    }

    /// Options that open the store.
    pub fn options(&self) -> Options {
        Options::new().prefixes(self.prefixes.iter().copied())
    }

    /// Buffered standard output.
    pub fn out(&self) -> RefMut<'_, BufWriter<Stdout>> {
        self.out.borrow_mut()
    }

    /// Writes the buffer out, so that the output appears now and any error is reported.
    pub fn flush(&self) -> Result<(), Failure> {
        Ok(self.out().flush()?)
    }

    /// Whether standard output is a terminal.
    pub fn out_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Prints one JSON object on a line of its own.
    pub fn print_json(&self, object: &impl serde::Serialize) -> Result<(), Failure> {
        let mut out = self.out();
        serde_json::to_writer(&mut *out, object).map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    }

    /// Prints a command's result: as a JSON object with `--json`, otherwise as `text` writes it.
    pub fn report(
        &self,
        report: &impl serde::Serialize,
        text: impl FnOnce(&mut BufWriter<Stdout>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.json { self.print_json(report) } else { text(&mut self.out()) }
    }

    /// For commands whose output has no JSON form.
    pub fn refuse_json(&self, command: &str) -> Result<(), Failure> {
        if self.json {
            return Err(Failure::message(format!("{command} has no JSON output; remove --json")));
        }
        Ok(())
    }
}
