//! `sidebloom seen`: prints lines that are new, and remembers them in the store.
//!
//! # Measured
//! 10 million new URLs (610 MB, `examples/generate_urls.rs`) through a pipe, on two cores of an AMD EPYC that
//! also did other work: 30 to 58 s. Under that load, the calls of `insert_new_many` alone took 69 to 82 s in
//! a program that does nothing else, with 1024 or 4096 rows each.

mod chunk;
mod columns;
mod lines;

use crate::context::{Context, Failure, Outcome};
use crate::human::parse_lifetime;
use crate::keyspace_arg::{KeyspaceArg, OpenKeyspace};
use crate::load::format::Format;
use crate::print::{JsonKey, LineFormat};
use crate::rows::{Column, ColumnChoice};
use chunk::Chunk;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use columns::KeyColumns;
use lines::Lines;
use sidebloom::{Expiry, Keyspace};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Print the lines that are new, and remember them
///
/// Creates the store if it is missing, but no keyspace. A line is new if it is no key of the store; then
/// it becomes one, with an empty value. Of equal lines, the first is new. Lines are printed as they came,
/// in their order. In the middle of a pipe, a line is printed before the next one is waited for.
///
/// Lines are remembered first and then printed, up to 4096 at a time. So as long as a line is remembered, it
/// is never printed as new again, even if the command is killed: for ever, or as long as --for says. What was
/// remembered but not yet printed is lost to the reader: the next run takes these lines for seen. The same
/// holds if the reader stops early, as `head` does. A power failure may also undo what was remembered last,
/// unless --sync is given.
///
/// With --check, nothing is remembered: prints each line that is no key of the store, equal lines too. The
/// store must exist, and another process may be writing it.
///
/// Exit codes follow grep: 0 if lines were printed (or counted), 1 if none were, 2 on error. The lines before
/// an error were remembered and printed. With --json, each line is an object with `key`, or `key_hex` if it
/// is not UTF-8; with --key, it also has `line` or `line_hex`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// The files; `-` is standard input
    #[arg(default_value = "-", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Remember nothing
    #[arg(long, conflicts_with = "sync")]
    check: bool,
    /// Print the lines that were seen before instead
    #[arg(short = 'v', long = "invert-match")]
    invert: bool,
    /// Print only the number of lines
    #[arg(short, long)]
    count: bool,
    /// Lines end in NUL instead of LF, also those printed
    #[arg(short = '0', long, conflicts_with = "key")]
    null: bool,
    /// Compare this column instead of the whole line: a number from 1, or a name from the header; for jsonl,
    /// a field that holds a string, number or boolean. May be repeated; the columns are then joined by TABs,
    /// and none may contain one. Each row is one line; blank lines are skipped
    #[arg(long, value_name = "COLUMN")]
    key: Vec<Column>,
    /// The first line of a tsv or csv file names its columns, and is not printed; implied when --key is a
    /// name
    #[arg(long, requires = "key")]
    header: bool,
    /// How lines have columns [default: from each file's extension (.tsv .csv .jsonl .ndjson), else tsv]
    #[arg(long, requires = "key", value_parser = PossibleValuesParser::new(["tsv", "csv", "jsonl"]).try_map(named))]
    format: Option<Format>,
    /// Forget each line this long after it was new, such as 90m, 24h or 7d: then it is new again
    #[arg(long = "for", value_name = "TIME", value_parser = parse_lifetime, conflicts_with = "check")]
    lifetime: Option<Duration>,
    /// Print a line only when it is on stable storage that it was seen
    #[arg(long)]
    sync: bool,
}

/// The first bytes of compressed files, and what decompresses them.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh91AY&SY", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
];

/// Its bytes would be remembered as lines.
fn refuse_compressed(file: &Path) -> Result<(), Failure> {
    let mut head = Vec::new();
    let opened = File::open(file).map_err(|e| Failure::file("open", file, e))?;
    opened.take(10).read_to_end(&mut head).map_err(|e| Failure::file("read", file, e))?;
    match COMPRESSED.iter().find(|(signature, _)| head.starts_with(signature)) {
        Some((_, tool)) => {
            let name = file.display();
            Err(Failure::message(format!(
                "{name}: the file is compressed: decompress it first ({tool} -dc FILE | sidebloom seen)"
            )))
        }
        None => Ok(()),
    }
}

/// The format with this name.
fn named(format: String) -> Result<Format, String> {
    Format::from_str(&format, false)
}

/// The lines printed, and all lines.
#[derive(Default)]
struct Counts {
    printed: u64,
    lines: u64,
}

/// A line whose key is some of its columns.
#[derive(serde::Serialize)]
struct JsonLine<'a> {
    #[serde(flatten)]
    key: JsonKey<'a>,
    #[serde(flatten)]
    line: JsonText<'a>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum JsonText<'a> {
    Line(&'a str),
    LineHex(String),
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        self.inspect_files()?;
        let db = self.open(cx)?;
        let mut counts = Counts::default();
        let ended = self.files.iter().try_for_each(|file| self.sift(cx, &db, file, &mut counts));
        let closed = db.close();
        if self.count && cx.json {
            cx.print_json(&serde_json::json!({ "count": counts.printed, "lines": counts.lines }))?;
        } else if self.count {
            writeln!(cx.out(), "{}", counts.printed)?;
        }
        ended?;
        closed?;
        Ok(Outcome::found(counts.printed > 0))
    }

    fn open(&self, cx: &Context) -> Result<OpenKeyspace, Failure> {
        if self.check { self.keyspace.open_to_read(cx) } else { self.keyspace.open_to_write(cx, true) }
    }

    /// Finds a missing file before any line is remembered.
    fn inspect_files(&self) -> Result<(), Failure> {
        let is_stdin = |file: &&PathBuf| file.as_os_str() == "-";
        if self.files.iter().filter(is_stdin).count() > 1 {
            return Err(Failure::message("standard input (-) can be read only once"));
        }
        for file in self.files.iter().filter(|file| !is_stdin(file)) {
            let meta = std::fs::metadata(file).map_err(|e| Failure::file("open", file, e))?;
            if meta.is_dir() {
                return Err(Failure::file("read", file, ErrorKind::IsADirectory.into()));
            }
            if meta.is_file() {
                refuse_compressed(file)?;
            }
        }
        self.files.iter().try_for_each(|file| self.columns(file).map(drop))
    }

    /// What finds the keys in the lines of a file; `None` if they are the lines.
    fn columns(&self, file: &Path) -> Result<Option<KeyColumns>, Failure> {
        if self.key.is_empty() {
            return Ok(None);
        }
        let format = self.format.unwrap_or_else(|| Format::of(file));
        let header = self.header || (format != Format::Jsonl && self.key.iter().any(Column::is_name));
        KeyColumns::new(format, ColumnChoice { key: self.key.clone(), value: Vec::new(), header }).map(Some)
    }

    fn sift(&self, cx: &Context, db: &Keyspace, file: &Path, counts: &mut Counts) -> Result<(), Failure> {
        let mut lines = Lines::open(file, self.null, self.columns(file)?)?;
        let mut chunk = Chunk::default();
        loop {
            let read = lines.fill(&mut chunk);
            if !chunk.is_empty() {
                self.tell(cx, db, &chunk, counts)?;
            }
            if !read? {
                return Ok(());
            }
        }
    }

    /// Remembers the lines of a chunk, then prints those wanted.
    fn tell(&self, cx: &Context, db: &Keyspace, chunk: &Chunk, counts: &mut Counts) -> Result<(), Failure> {
        let are_new: Vec<bool> = if self.check {
            let keys: Vec<&[u8]> = chunk.rows().map(|(_, key)| key).collect();
            db.multi_get(&keys)?.iter().map(Option::is_none).collect()
        } else {
            let rows: Vec<(&[u8], &[u8])> = chunk.rows().map(|(_, key)| (key, &b""[..])).collect();
            match self.lifetime {
                Some(lifetime) => db.insert_new_many_with(&rows, Expiry::after(lifetime))?,
                None => db.insert_new_many(&rows)?,
            }
        };
        if self.sync {
            db.sync()?;
        }
        for ((line, key), is_new) in chunk.rows().zip(are_new) {
            counts.lines += 1;
            if is_new != self.invert {
                counts.printed += 1;
                self.print(cx, line, key)?;
            }
        }
        cx.flush()
    }

    fn print(&self, cx: &Context, line: &[u8], key: &[u8]) -> Result<(), Failure> {
        match self {
            Args { count: true, .. } => Ok(()),
            Args { key: columns, .. } if cx.json && !columns.is_empty() => {
                let text = std::str::from_utf8(line).map(JsonText::Line);
                let line = text.unwrap_or_else(|_| JsonText::LineHex(crate::hex::encode(line)));
                cx.print_json(&JsonLine { key: JsonKey::new(key, false), line })
            }
            _ => LineFormat::new(cx.json, self.null).write(&mut *cx.out(), line),
        }
    }
}
