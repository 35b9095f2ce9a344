//! Repair: a store whose manifest is lost, or names segments that are lost, becomes openable again with all that is readable.
//!
//! 1. Every block of every segment is read. Of a damaged segment, the rows around the damage are written to a new segment of the same
//!    level; the old one is set aside once the manifest does without it.
//! 2. A readable manifest is kept; if the segments of a sorted level overlap, all go to level 0. One that names files which are not
//!    there, or that ends before the logs begin, has lost its last edits, and with them the names of segments: it counts as unreadable.
//! 3. Without one, every segment goes to level 0. Their ages may interleave, so each entry's own sequence number decides:
//!    reads and compaction compare them, and the next compaction sorts level 0 out. Obsolete segments that a reader still held have another
//!    name (`FileKind::Obsolete`): compaction has dropped tombstones that would hide their rows, so they stay out.
//! 4. Logs stay: the next opening replays them. If that would fail, all batches that are readable are written anew (see `logs`).
//! 5. What is set aside is renamed to `*.damaged`, never removed, and what replaces a file is complete and durable before: a repair
//!    that a crash interrupts can start again without loss.

mod gather;
mod logs;
mod report;
mod segments;

pub use logs::LogSalvage;
pub use report::{LostRange, RepairReport};

use super::options::Options;
use super::recover::{LOCK, next_free_id};
use crate::error::{Error, Result};
use crate::fs::{Fs, LockMode, read_around_errors};
use crate::id::{FileId, FileKind};
use crate::manifest::{MANIFEST, Manifest, ManifestState, read_state};
use crate::segment::is_damage;
use crate::wal;
use segments::Replaced;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Repairs the store in directory `path`. Nothing readable is lost, nothing is removed; nobody may have the store open. What the disk does not
/// give, because its reads fail, is reported as lost like any other damage.
///
/// # Errors
/// [`Error::NotAStore`] when there is no file of a store, [`Error::Locked`], [`Error::Io`] when a file cannot be opened or written.
pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
    Options::new().repair(path)
}

/// Repairs the store on `fs`.
pub(super) fn repair_on(fs: Arc<dyn Fs>, path: &Path) -> Result<RepairReport> {
    let names = match fs.file_len(path)? {
        Some(_) => fs.list(path)?,
        None => Vec::new(),
    };
    if !names.iter().any(|name| name == MANIFEST || FileKind::parse(name).is_some()) {
        let what = "there is no file of a store".to_owned();
        return Err(Error::NotAStore { path: path.to_path_buf(), what });
    }
    let _lock = fs.lock(&path.join(LOCK), LockMode::Exclusive)?;
    let next_id = FileId(0);
    Repair { fs, path, names, report: RepairReport::default(), next_id, replaced: Vec::new() }.run()
}

struct Repair<'a> {
    fs: Arc<dyn Fs>,
    path: &'a Path,
    names: Vec<String>,
    report: RepairReport,
    /// For the next segment that is written anew.
    next_id: FileId,
    /// Damaged segments, to be set aside once the manifest does without them.
    replaced: Vec<Replaced>,
}

impl Repair<'_> {
    fn run(mut self) -> Result<RepairReport> {
        let known = match read_state(&*self.fs, self.path) {
            Ok(state) => self.keep_if_complete(state)?,
            Err(Error::NotAStore { .. }) => None,
            Err(error) if is_damage(&error) => {
                self.set_aside(MANIFEST, error)?;
                None
            }
            Err(error) => return Err(error),
        };
        let (state, changed) = match known {
            Some(state) => self.check_segments(state)?,
            None => (self.gather()?, true),
        };
        self.report.segments = state.segments.len() as u64;
        self.report.entries = state.segments.values().map(|meta| meta.entries).sum();
        self.report.rebuilt = changed;
        if changed {
            let next_id = FileId(next_free_id(&state, &self.names).max(self.next_id.0));
            let state = ManifestState { next_id, ..state.clone() };
            self.fs.sync_dir(self.path)?;
            Manifest::create(Arc::clone(&self.fs), self.path, &state)?;
        }
        self.take_away_replaced()?;
        self.mend_logs(&state)?;
        self.fs.sync_dir(self.path)?;
        Ok(self.report)
    }

    /// Sets a manifest aside that has lost its last edits.
    fn keep_if_complete(&mut self, state: ManifestState) -> Result<Option<ManifestState>> {
        let manifest = self.path.join(MANIFEST);
        for id in state.segments.keys() {
            if self.fs.file_len(&self.path.join(id.file_name(FileKind::Segment)))?.is_none() {
                self.set_aside(
                    MANIFEST,
                    Error::corruption(&manifest, 0, format!("it names segment {id}, which is missing")),
                )?;
                return Ok(None);
            }
        }
        let needed = self.files(FileKind::Wal).into_iter().find(|id| *id >= state.log_floor);
        let first_log =
            needed.map(|id| wal::identify(&*self.fs, &self.path.join(id.file_name(FileKind::Wal))));
        match first_log {
            // Only lost edits leave segments that it does not name; otherwise it is a log that was lost.
            Some(Ok(Some(log))) if log.first_seq > state.last_seq + 1 && self.has_unnamed_segment(&state) => {
                let what = format!(
                    "it ends at operation {}, but the first log begins at {}",
                    state.last_seq, log.first_seq
                );
                self.set_aside(MANIFEST, Error::corruption(&manifest, 0, what))?;
                Ok(None)
            }
            _ => Ok(Some(state)),
        }
    }

    fn has_unnamed_segment(&self, state: &ManifestState) -> bool {
        self.files(FileKind::Segment).iter().any(|id| !state.segments.contains_key(id))
    }

    /// The numbers of all files of a kind, in order.
    fn files(&self, wanted: FileKind) -> Vec<FileId> {
        let mut ids: Vec<_> = self.names.iter().filter_map(|name| FileKind::parse(name)).collect();
        ids.retain(|(_, kind)| *kind == wanted);
        ids.sort();
        ids.into_iter().map(|(id, _)| id).collect()
    }

    fn set_aside(&mut self, name: &str, why: Error) -> Result<()> {
        tracing::warn!(%why, name, "set aside");
        let file = self.path.join(name);
        if self.fs.file_len(&file)?.is_some() {
            self.report.bytes_set_aside += self.fs.file_len(&file)?.unwrap_or(0);
            self.fs.rename(&file, &self.aside(name)?)?;
        }
        self.report.set_aside.push(why);
        Ok(())
    }

    /// Gives a file the name under which it stays, beside the one that it has.
    fn keep_aside(&self, name: &str) -> Result<()> {
        let (file, aside) = (self.path.join(name), self.aside(name)?);
        match self.fs.hard_link(&file, &aside) {
            Ok(()) => Ok(()),
            Err(_) => self.copy(&file, &aside), // Not every file system has links.
        }
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        const PIECE_BYTES: u64 = 1 << 20;
        let (source, mut copy) = (self.fs.open(from)?, self.fs.create(to)?);
        let (len, mut at) = (source.len()?, 0);
        while at < len {
            let mut piece = vec![0; PIECE_BYTES.min(len - at) as usize];
            read_around_errors(&*source, &mut piece, at);
            copy.append(&piece)?;
            at += piece.len() as u64;
        }
        copy.sync()
    }

    /// Where a file is set aside: a name that no earlier repair has given.
    fn aside(&self, name: &str) -> Result<PathBuf> {
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!(".{number}") };
            let path = self.path.join(format!("{name}.damaged{suffix}"));
            if self.fs.file_len(&path)?.is_none() {
                return Ok(path);
            }
            number += 1;
        }
    }
}
