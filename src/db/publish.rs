//! The one way in which the set of segments changes, for flush and compaction alike:
//! segment durable → sidecar durable → directory fsync → manifest edit durable → visible → unlink old.

use super::core::{Core, lock};
use super::view::View;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{Edit, LiveSegment, LogMark, check_levels};
use crate::memtable::Memtable;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A change of the live set. The segments and sidecars in `added` are durable already (but for the directory).
#[derive(Default)]
pub(crate) struct Change {
    pub added: Vec<LiveSegment>,
    pub removed: Vec<LiveSegment>,
    /// A flush: the memtable that the added segment replaces, its newest sequence number, and the first log still needed.
    pub flushed: Option<(Arc<Memtable>, Seq, FileId)>,
}

impl Core {
    /// Publishes a change. An error leaves the old set in place and, unless a descriptor was missing, the store read-only.
    pub fn publish(&self, change: Change) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        // After a failed append the manifest's end is unknown, and `state` is ahead of it: nothing may follow (I5).
        self.check_writable()?;
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let flushed = change.flushed.as_ref();
        // The log at the new floor is there, whether or not any of it was synced.
        let at_floor = flushed.map(|(_, seq, floor)| LogMark { log: *floor, bytes: 0, next_seq: seq + 1 });
        let edit = Edit {
            added: change.added.iter().map(|s| (*s.meta).clone()).collect(),
            removed: change.removed.iter().map(|s| s.meta.id).collect(),
            log_floor: flushed.map(|(_, _, floor)| *floor),
            last_seq: flushed.map(|(_, seq, _)| *seq),
            next_id: Some(FileId(self.next_id.load(Ordering::Relaxed))),
            log_mark: lock(&self.control).synced.max(at_floor),
        };
        if let Err(error) = self.fs.sync_dir(&self.dir) {
            if error.is_out_of_descriptors() {
                // It is all done again later: files that never became part of the store go at once.
                let live = self.live();
                let is_new = |s: &&LiveSegment| !live.segments().any(|old| old.meta.id == s.meta.id);
                change.added.iter().filter(is_new).for_each(|s| s.file.mark_obsolete());
            }
            return Err(self.fail(error));
        }
        state.apply(&edit).map_err(|e| self.fail(e))?;
        check_levels(state, &self.dir).map_err(|e| self.fail(e))?;
        log.append(&edit, state).map_err(|e| self.fail(e))?;

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
        self.check_writable()?;
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let log_mark = lock(&self.control).synced;
        if log_mark.map(|mark| mark.next_seq) <= state.log_mark.map(|mark| mark.next_seq) {
            return Ok(());
        }
        let edit = Edit { log_mark, ..Edit::default() };
        state.apply(&edit).map_err(|e| self.fail(e))?;
        log.append(&edit, state).map_err(|e| self.fail(e))
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
