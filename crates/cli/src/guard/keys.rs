//! Keys to insert or remove: arguments, or lines of a file.

use crate::context::{Context, Failure};
use crate::filter::input::InputLines;
use sidebloom::guard::{Changes, Guard};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Which keys.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub struct Keys {
    /// The keys
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    keys: Vec<OsString>,
    /// Read keys from a file instead, one per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
}

/// How lines end. Not part of [`Keys`], of which only one may be given.
#[derive(clap::Args)]
pub struct LineEnd {
    /// Lines end in NUL instead of LF
    #[arg(short = '0', long)]
    null: bool,
}

/// Keys from a file are applied in batches of this size, with one write to stable storage each.
const BATCH: usize = 4096;

/// Opens a guard for changes. Refuses one that follows a database: a manual change would count twice.
pub fn open(cx: &Context, dir: &Path) -> Result<Guard, Failure> {
    let guard = cx.opening(|| Guard::open(dir))?;
    if is_followed(&guard)? {
        Err(Failure::message(format!(
            "{} follows a database: insert and remove rows there, and `guard follow` applies them",
            dir.display()
        )))
    } else {
        Ok(guard)
    }
}

/// Whether a guard follows a database: its note holds a position in the database's changes.
pub fn is_followed(guard: &Guard) -> Result<bool, Failure> {
    Ok(guard.note()?.is_some_and(|note| !note.is_empty()))
}

impl Keys {
    /// Changes each key: atomically for arguments, in batches for lines. Returns their number.
    pub fn in_batches(
        &self,
        label: &str,
        guard: &Guard,
        end: &LineEnd,
        change: impl Fn(&mut Changes, &[u8]),
    ) -> Result<u64, Failure> {
        if end.null && self.lines.is_none() {
            return Err(Failure::message("--null needs --lines"));
        }
        let mut changes = Changes::new();
        let Some(path) = &self.lines else {
            self.keys.iter().for_each(|key| change(&mut changes, key.as_bytes()));
            guard.write(&changes)?;
            return Ok(changes.len() as u64);
        };
        let mut applied = 0;
        InputLines::open(path, label)?.ending_in_nul(end.null).for_each(|line| {
            change(&mut changes, line);
            if changes.len() == BATCH {
                guard.write(&std::mem::take(&mut changes))?;
                applied += BATCH as u64;
            }
            Ok(())
        })?;
        guard.write(&changes)?;
        Ok(applied + changes.len() as u64)
    }
}
