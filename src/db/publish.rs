//! The one way in which the set of segments changes, for flush and compaction alike:
//! segment durable → sidecar durable → directory fsync → manifest edit durable → visible → unlink old.

use super::core::{Core, lock};
use super::take_back::note_overtaken;
use super::view::View;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{Edit, LiveSegment, LiveSet, LogMark, Manifest, ManifestState, check_levels};
use crate::memtable::Memtable;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A change of the live set. The segments and sidecars in `added` are durable already (but for the directory).
#[derive(Default)]
pub(crate) struct Change {
    pub added: Vec<LiveSegment>,
    pub removed: Vec<LiveSegment>,
    /// A flush: the memtable that the added segment replaces, its newest sequence number if it has
    /// any, and the first log still needed.
    pub flushed: Option<(Arc<Memtable>, Option<Seq>, FileId)>,
}

impl Core {
    /// Publishes a change. An error leaves the old set in place, and the files of added segments go, unless the manifest may name them;
    /// unless the error may pass, the store is read-only then.
    pub fn publish(&self, change: Change) -> Result<()> {
        self.publish_if(|_| Some(change))
    }

    /// Publishes the change that follows from the live set at the time when nobody else publishes any more; nothing without one.
    pub fn publish_if(&self, change: impl FnOnce(&LiveSet) -> Option<Change>) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let live = self.live();
        let Some(mut change) = change(&live) else { return Ok(()) };
        note_overtaken(&live, &mut change);
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let flushed = change.flushed.as_ref();
        // The log at the new floor is there, whether or not any of it was synced.
        let at_floor = flushed.map(|(_, seq, floor)| LogMark {
            log: *floor,
            bytes: 0,
            next_seq: seq.unwrap_or(state.last_seq) + 1,
        });
        let edit = Edit {
            added: change.added.iter().map(|s| (*s.meta).clone()).collect(),
            removed: change.removed.iter().map(|s| s.meta.id).collect(),
            log_floor: flushed.map(|(_, _, floor)| *floor),
            last_seq: flushed.and_then(|(_, seq, _)| *seq),
            next_id: Some(FileId(self.next_id.load(Ordering::Relaxed))),
            log_mark: lock(&self.control).synced.max(at_floor),
        };
        self.record(log, state, &edit, &change.added).map_err(|e| self.fail(e))?;

        let stays: BTreeSet<FileId> = change.added.iter().map(|s| s.meta.id).collect();
        let removed: BTreeSet<FileId> = edit.removed.iter().copied().collect();
        let mut control = lock(&self.control);
        self.change_view(&mut control, |view: &mut View| {
            let mut added = change.added;
            for segment in &mut added {
                // One that only changes its level keeps the sidecar that it has by now: a rebuild may have been quicker.
                if let Some(now) = view.live.segments().find(|s| s.meta.id == segment.meta.id) {
                    segment.sidecar.clone_from(&now.sidecar);
                }
            }
            view.live = Arc::new(view.live.with(added, &removed));
            if let Some((flushed, _, _)) = &change.flushed {
                view.immutable.retain(|table| !Arc::ptr_eq(table, flushed));
            }
        });
        let old_floor = control.log_floor;
        control.log_floor = edit.log_floor.unwrap_or(old_floor);
        let new_floor = control.log_floor;
        drop(control);
        drop(manifest);

        let gone = change.removed.iter().filter(|s| !stays.contains(&s.meta.id));
        gone.for_each(|s| s.file.mark_obsolete());
        lock(&self.unsynced).retain(|(log, _)| *log >= new_floor); // An open file keeps its space when it is unlinked.
        self.remove_logs(old_floor, new_floor);
        self.work.notify_all();
        self.progress.notify_all();
        Ok(())
    }

    /// Tells the manifest how much of the logs was synced, so that a log that loses any of it is found out.
    pub fn publish_log_mark(&self) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let log_mark = lock(&self.control).synced;
        if log_mark.map(|mark| mark.next_seq) <= state.log_mark.map(|mark| mark.next_seq) {
            return Ok(());
        }
        let edit = Edit { log_mark, ..Edit::default() };
        self.record(log, state, &edit, &[]).map_err(|e| self.fail(e))
    }

    /// Makes an edit durable. After an error `state` is as before, and so is the manifest, or it is torn and written anew next time.
    fn record(
        &self,
        manifest: &mut Manifest,
        state: &mut ManifestState,
        edit: &Edit,
        added: &[LiveSegment],
    ) -> Result<()> {
        let known: BTreeSet<FileId> = state.segments.keys().copied().collect();
        let unknown = || added.iter().filter(|s| !known.contains(&s.meta.id));
        let mut after = state.clone();
        let prepared = self.check_writable().and_then(|()| {
            self.mend(manifest, state)?;
            self.fs.sync_dir(&self.dir)?;
            after.apply(edit).map_err(Error::Internal)?;
            check_levels(&after, &self.dir)
        });
        if let Err(error) = prepared {
            unknown().for_each(|s| s.file.mark_obsolete()); // No manifest names them.
            return Err(error);
        }
        if let Err(error) = manifest.append(edit, &after) {
            lock(&self.control).doubtful.extend(unknown().cloned());
            return Err(error);
        }
        *state = after;
        Ok(())
    }

    /// Writes a manifest anew whose last edit failed. Then it certainly does not name the segments of that edit.
    fn mend(&self, manifest: &mut Manifest, state: &ManifestState) -> Result<()> {
        if manifest.is_torn() {
            manifest.rewrite(state)?;
            let doubtful = std::mem::take(&mut lock(&self.control).doubtful);
            doubtful.iter().for_each(|s| s.file.mark_obsolete());
        }
        Ok(())
    }

    /// Unlinks the logs from `from` up to and without `to`. One that stays is harmless: the next open removes it.
    fn remove_logs(&self, from: FileId, to: FileId) {
        let ids = (from.0..to.0).map(FileId);
        for path in ids.map(|id| self.path_of(id, FileKind::Wal)) {
            if let Ok(Some(_)) = self.fs.file_len(&path)
                && let Err(error) = self.fs.remove(&path)
            {
                tracing::warn!(%error, "a flushed log stays for now");
            }
        }
    }
}
