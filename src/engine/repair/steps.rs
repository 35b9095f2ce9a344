//! The steps of a repair, in order.

use super::renumber::{NEXT_SEQ_KEPT_MAX, renumber};
use super::report::{LogSalvage, LostRange, RepairReport};
use super::workspace::Repair;
use crate::engine::storage::names::{
    LOCK, has_manifest, next_free_id, refuse_unfinished_copy, unusual_number,
};
use crate::error::{Error, Result};
use crate::fs::{Fs, LockMode, LockedFs, open_dir, with_mode_of};
use crate::id::{FileId, FileKind};
use crate::manifest::{MANIFEST, Manifest, ManifestState, read_state};
use crate::options::Options;
use crate::progress::{Progress, Tracker, unstoppable};
use crate::segment::{SEARCH_BYTES_REPAIR, is_damage};
use crate::sync::WallClock;
use crate::wal::LogStart;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Repairs the store in directory `path`, which must not be open. Keeps everything readable, and sets damaged
/// files aside instead of removing them. Bytes that the disk cannot read are reported as lost, like any other
/// damage. If the sequence numbers are near their end, every row is rewritten under a low one.
///
/// # Errors
/// [`Error::NotAStore`] if the directory contains no store files, or a copy that was never completed;
/// [`Error::Locked`]; [`Error::Io`] if a file cannot be opened or written.
pub fn repair(path: impl AsRef<Path>) -> Result<RepairReport> {
    Options::new().repair(path)
}

/// Like [`repair`], but calls `progress` after each file, with the bytes of segments and logs that were read.
///
/// # Errors
/// The errors of [`repair`].
pub fn repair_with(path: impl AsRef<Path>, progress: impl FnMut(&Progress)) -> Result<RepairReport> {
    Options::new().repair_with(path, progress)
}

impl Options {
    /// Repairs the store in directory `path` on this file system, like [`repair`]. Of the other settings,
    /// only the mode and the clock have an effect.
    ///
    /// # Errors
    /// The errors of [`repair`].
    pub fn repair(self, path: impl AsRef<Path>) -> Result<RepairReport> {
        self.repair_with(path, |_| ())
    }

    /// Like [`repair`](Self::repair), with the progress of [`repair_with`].
    ///
    /// # Errors
    /// The errors of [`repair`].
    pub fn repair_with(
        self,
        path: impl AsRef<Path>,
        progress: impl FnMut(&Progress),
    ) -> Result<RepairReport> {
        let path = self.fs.absolute(path.as_ref())?;
        let mut tell = unstoppable(progress);
        let progress = Tracker::new(&mut tell, None);
        repair_on(&self.named_fs(), &path, self.mode.is_none(), self.clock, progress)
    }
}

/// Repairs the store that `named` finds at `path`. New files may get the mode of existing ones.
fn repair_on<'a>(
    named: &Arc<dyn Fs>,
    path: &'a Path,
    keep_mode: bool,
    clock: Arc<dyn WallClock>,
    progress: Tracker<'a>,
) -> Result<RepairReport> {
    let fs = match named.file_len(path)? {
        Some(_) => open_dir(named, path)?,
        None => Arc::clone(named),
    };
    let names = match fs.file_len(path)? {
        Some(_) => fs.list(path)?,
        None => Vec::new(),
    };
    refuse_unfinished_copy(&*fs, path, &names)?;
    if !names.iter().any(|name| FileKind::parse(name).is_some()) && !has_manifest(&*fs, path, &names)? {
        let what = "it contains no store files".to_owned();
        return Err(Error::NotAStore { path: path.to_path_buf(), what });
    }
    let lock = fs.lock(&path.join(LOCK), LockMode::Exclusive)?;
    let fs = if keep_mode { with_mode_of(fs, &*lock) } else { fs };
    let fs = LockedFs::wrap(fs, path, LOCK, &*lock);
    let names = fs.list(path)?; // Again: a store may have been open until the lock was taken.
    Repair {
        fs,
        path,
        names,
        report: RepairReport::default(),
        next_id: FileId(0),
        is_manifest_lost: false,
        is_store_unknown: false,
        in_segments: 0,
        gap_before_logs: None,
        search_bytes: SEARCH_BYTES_REPAIR,
        keyspace_names: BTreeMap::new(),
        progress,
        replaced: Vec::new(),
    }
    .all_steps(clock)
}

impl Repair<'_> {
    fn all_steps(mut self, clock: Arc<dyn WallClock>) -> Result<RepairReport> {
        self.set_aside_irregular_logs()?;
        let bytes = self.bytes_of(FileKind::Segment)?.saturating_add(self.bytes_of(FileKind::Wal)?);
        self.progress.expect(bytes);
        let known = match read_state(&*self.fs, self.path) {
            Ok(state) => self.keep_if_complete(state)?,
            Err(Error::NotAStore { .. }) => None,
            Err(error) if is_damage(&error) => {
                self.set_aside(MANIFEST, error)?;
                None
            }
            Err(error) => return Err(error),
        };
        self.is_manifest_lost = known.is_none();
        let (state, changed) = match known {
            Some(state) => {
                self.in_segments = state.newest_in_segments();
                self.check_segments(state)?
            }
            None => {
                let state = self.gather()?;
                self.report_gap_before_logs();
                (state, true)
            }
        };
        self.report.segments = state.segments.len() as u64;
        self.report.entries = state.segments.values().map(|meta| meta.entries).fold(0, u64::saturating_add);
        self.report.rebuilt = changed;
        let next_id = FileId(next_free_id(&state, &self.names).max(self.next_id.0));
        let state = if changed { ManifestState { next_id, ..state } } else { state };
        if changed {
            self.fs.sync_dir(self.path)?;
            // A new manifest says nothing about what was synced, so logs are read more carefully without one.
            // It waits until they are repaired.
            if !self.is_manifest_lost {
                Manifest::create(Arc::clone(&self.fs), self.path, &state)?;
                self.set_aside_replaced()?;
            }
        }
        let next_seq = self.repair_logs(&state)?;
        for log in self.files(FileKind::Wal) {
            self.note_read(log, FileKind::Wal)?;
        }
        self.set_aside_replaced()?;
        self.fs.sync_dir(self.path)?;
        self.restore_keyspace_names(&state, Arc::clone(&clock))?;
        if next_seq.max(state.newest_in_segments()) > NEXT_SEQ_KEPT_MAX {
            tracing::warn!(next_seq, "the sequence numbers are near their end: renumbering all rows");
            let state = renumber(Arc::clone(&self.fs), self.path, clock)?;
            self.report.segments = state.segments.len() as u64;
            self.report.entries = state.segments.values().map(|meta| meta.entries).sum();
            self.report.rebuilt = true;
        }
        self.progress.finish();
        Ok(self.report)
    }

    /// Sets aside anything that has a log's name and is not a regular file: it cannot be read.
    fn set_aside_irregular_logs(&mut self) -> Result<()> {
        for id in self.files(FileKind::Wal) {
            if let Err(error @ Error::Corruption { .. }) = self.fs.open(&self.log_path(id)) {
                let name = id.file_name(FileKind::Wal);
                self.set_aside(&name, error)?;
                self.names.retain(|other| *other != name);
            }
        }
        Ok(())
    }

    /// The manifest's state; `None` if the manifest has lost its last edits. Then it is set aside.
    fn keep_if_complete(&mut self, state: ManifestState) -> Result<Option<ManifestState>> {
        let manifest = self.path.join(MANIFEST);
        if !state.next_id.leaves_room() {
            self.set_aside(MANIFEST, unusual_number(manifest))?;
            return Ok(None);
        }
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
        let start = needed.map(|id| self.log_start(id, state.header.store_id)).transpose()?;
        match start {
            // Operations in a segment that no manifest names prove lost edits. Otherwise, a log was lost.
            Some(LogStart::At(seq)) if seq > state.last_seq + 1 && self.has_newer_segment(&state)? => {
                let what =
                    format!("it ends at operation {}, but the first log begins at {seq}", state.last_seq);
                self.set_aside(MANIFEST, Error::corruption(&manifest, 0, what))?;
                self.gap_before_logs = Some(state.last_seq + 1..=seq - 1);
                Ok(None)
            }
            _ => Ok(Some(state)),
        }
    }

    /// The segments that seemed to have these operations were unreadable or had only the first of them. In
    /// the latter case, the last ones may also have been tombstones that a compaction dropped.
    fn report_gap_before_logs(&mut self) {
        let Some(gap) = self.gap_before_logs.take().filter(|gap| self.in_segments < *gap.end()) else {
            return;
        };
        if self.in_segments < *gap.start() {
            self.report.logs = Some(LogSalvage { operations_lost: vec![gap], ..LogSalvage::default() });
        }
        let file = self.path.join(MANIFEST);
        self.report.lost.push(LostRange { file, first: Bound::Unbounded, last: Bound::Unbounded });
    }

    /// Whether a segment that the manifest does not name may have newer operations than it knows. Older ones
    /// are outputs of a compaction, or its inputs, about to be removed: together with the named segments,
    /// they would bring deleted keys back.
    fn has_newer_segment(&self, state: &ManifestState) -> Result<bool> {
        for id in self.files(FileKind::Segment) {
            if state.segments.contains_key(&id) {
                continue;
            }
            let properties = self.properties(id)?;
            if properties.is_none_or(|own| own.store == state.header && own.facts.max_seq > state.last_seq) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
