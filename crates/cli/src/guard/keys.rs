//! Keys to change: arguments, or lines of a file.

use crate::context::Failure;
use crate::filter::input::Lines;
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
    /// A file with one key a line instead; `-` is standard input
    #[arg(long, value_name = "FILE")]
    lines: Option<PathBuf>,
}

/// Keys of lines are applied this many at once: one write to stable storage for all of them.
const BATCH: usize = 4096;

/// Opens a guard for changes. One that follows a database is left to its follower: a change by hand would be counted twice.
pub fn open(dir: &Path) -> Result<Guard, Failure> {
    let guard = Guard::open(dir)?;
    match is_followed(&guard)? {
        true => Err(Failure::message(format!(
            "{} follows a database (it keeps a position in its changes): insert and remove rows there, and `guard follow` brings them",
            dir.display()
        ))),
        false => Ok(guard),
    }
}

/// Whether a guard keeps a position in the changes of a database.
pub fn is_followed(guard: &Guard) -> Result<bool, Failure> {
    Ok(guard.note()?.is_some_and(|note| !note.is_empty()))
}

impl Keys {
    /// Applies a change for each key. Those given as arguments are applied all or none; lines, some thousand at once.
    pub fn in_batches(
        &self,
        label: &str,
        guard: &Guard,
        change: impl Fn(&mut Changes, &[u8]),
    ) -> Result<u64, Failure> {
        let mut changes = Changes::new();
        let Some(path) = &self.lines else {
            self.keys.iter().for_each(|key| change(&mut changes, key.as_bytes()));
            guard.write(&changes)?;
            return Ok(changes.len() as u64);
        };
        let mut applied = 0;
        Lines::open(path, label)?.for_each(|line| {
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
