//! Publication: the only way to change the set of segments, for flush and compaction alike: segment durable →
//! sidecar durable → directory fsync → manifest edit durable → visible → old files unlinked.

use crate::engine::shared::Shared;
use crate::engine::unsynced_logs::UnsyncedLogs;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::{
    Edit, LogMark, Manifest, ManifestState, Place, Quarantine, check_edit, overlapping_levels,
};
use crate::memtable::Memtable;
use crate::sync::{Mutex, lock};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A change of the live set. The segments and sidecars in `added` are durable, except directory entries.
#[derive(Default)]
pub(crate) struct LiveSetChange {
    pub added: Vec<LiveSegment>,
    pub removed: Vec<LiveSegment>,
    /// For a flush: the memtable that the added segment replaces.
    pub flushed: Option<FlushedMemtable>,
    /// How much of the logs is durable, if the manifest must not say so before this change.
    pub log_mark: Option<LogMark>,
}

/// A memtable that was written to a segment.
pub(crate) struct FlushedMemtable {
    pub table: Arc<Memtable>,
    /// The newest sequence number before `next_log`; `None` if there is none since the last flush.
    pub last_seq: Option<Seq>,
    /// The first log still needed.
    pub next_log: FileId,
    /// The memtable that accepts writes from then on, if the flushed one did.
    pub next: Option<Arc<Memtable>>,
}

impl LiveSetChange {
    /// Records for each segment in quarantine whether this change moves newer entries of its keys below it.
    fn note_overtaken(&mut self, live: &LiveSet) {
        for suspect in live.quarantined() {
            let Some(before) = suspect.meta.place.quarantine() else { continue };
            let (smallest, largest) = (&suspect.meta.smallest, &suspect.meta.largest);
            let overlaps = |s: &&LiveSegment| s.overlaps(smallest, largest);
            let from = self.removed.iter().filter(overlaps).map(|s| s.meta.place.last_level()).min();
            let to = self.added.iter().filter(overlaps).filter_map(LiveSegment::level).max();
            let (Some(from), Some(overtaken)) = (from, to) else { continue };
            let stays = self.removed.iter().all(|s| s.meta.id != suspect.meta.id);
            if stays && from <= before.overtaken && before.overtaken < overtaken {
                self.added.push(suspect.at(Place::Quarantine(Quarantine { overtaken, ..before })));
                self.removed.push(suspect.clone());
            }
        }
    }
}

/// The live set after a change.
fn next_live(live: &LiveSet, change: &LiveSetChange) -> LiveSet {
    let mut added = change.added.clone();
    for segment in &mut added {
        // A segment that only changes its level keeps its current sidecar, maybe newer than the change's.
        if let Some(now) = live.now(&segment.meta) {
            segment.sidecar.clone_from(&now.sidecar);
        }
    }
    live.with(added, &change.removed)
}

/// Changes the manifest.
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    /// `None` in a read-only store.
    manifest: Mutex<Option<(Manifest, ManifestState)>>,
    unsynced: UnsyncedLogs,
}

impl Publisher {
    /// Without a manifest, the store is read-only.
    pub fn new(shared: Arc<Shared>, manifest: Option<(Manifest, ManifestState)>) -> Self {
        Publisher { shared, manifest: Mutex::new(manifest), unsynced: UnsyncedLogs::default() }
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The logs that wait for a sync.
    pub fn unsynced(&self) -> &UnsyncedLogs {
        &self.unsynced
    }

    /// Applies `read` to the manifest's state. Nothing is published during the call, so the live set has
    /// exactly the segments of the state.
    pub fn with_state<T>(&self, read: impl FnOnce(&ManifestState) -> T) -> Result<T> {
        let manifest = lock(&self.manifest);
        manifest.as_ref().map(|(_, state)| read(state)).ok_or(Error::ReadOnly)
    }

    /// Nobody else publishes while the returned guard lives.
    pub fn hold(&self) -> impl Drop {
        lock(&self.manifest)
    }

    /// Publishes a change. On an error, the old set stays, and the files of the added segments are removed
    /// unless the manifest may name them. Unless the error is temporary, the store becomes read-only.
    pub fn publish(&self, change: LiveSetChange) -> Result<()> {
        self.publish_if(|_| Some(change))
    }

    /// Publishes the change that the closure derives from the live set while nobody else can publish. `None`
    /// publishes nothing.
    pub fn publish_if(&self, change: impl FnOnce(&LiveSet) -> Option<LiveSetChange>) -> Result<()> {
        self.shared.poison_on_panic(|| self.publish_change(change))
    }

    fn publish_change(&self, change: impl FnOnce(&LiveSet) -> Option<LiveSetChange>) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let live = self.shared.live();
        let Some(mut change) = change(&live) else { return Ok(()) };
        change.note_overtaken(&live);
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let flushed = change.flushed.as_ref();
        // The log at the new floor exists, whether or not any of it was synced.
        let at_floor = flushed.map(|flushed| LogMark {
            log: flushed.next_log,
            bytes: 0,
            next_seq: flushed.last_seq.unwrap_or(state.last_seq) + 1,
        });
        let edit = Edit {
            added: change.added.iter().map(|s| (*s.meta).clone()).collect(),
            removed: change.removed.iter().map(|s| s.meta.id).collect(),
            log_floor: flushed.map(|flushed| flushed.next_log),
            last_seq: flushed.and_then(|flushed| flushed.last_seq),
            log_mark: self.shared.control.lock().logs.synced.max(at_floor).max(change.log_mark),
            ..Edit::default()
        };
        let mut next = Some(next_live(&live, &change));
        let recorded = self.record(log, state, edit, (&change.added, next.as_ref()));
        let edit = recorded.map_err(|e| self.shared.fail(e))?;
        let version = state.next_id.0;

        self.shared.change_live(
            |now| {
                if Arc::ptr_eq(now, &live) {
                    next.take()
                } else {
                    Some(next_live(now, &change)) // It has new sidecars.
                }
            },
            |view| {
                if let Some(flushed) = &change.flushed {
                    view.immutable.retain(|table| !Arc::ptr_eq(table, &flushed.table));
                    flushed.next.iter().for_each(|next| view.active = Arc::clone(next));
                }
            },
        );
        debug_assert!(self.shared.live().is_of(state), "the live set and the manifest differ");
        let mut control = self.shared.control.lock();
        let old_floor = control.logs.floor;
        control.logs.floor = edit.log_floor.unwrap_or(old_floor);
        let new_floor = control.logs.floor;
        drop(control);
        drop(manifest);

        let stays: BTreeSet<FileId> = change.added.iter().map(|s| s.meta.id).collect();
        let mut gone: Vec<_> = change.removed.iter().filter(|s| !stays.contains(&s.meta.id)).collect();
        // The deepest level, with the oldest entries, is removed first. If the process is killed in between
        // and the manifest is lost too, a repair finds the tombstone of each value that it finds (except in
        // levels whose ages an earlier repair has mixed).
        gone.sort_by_key(|s| (Reverse(s.meta.place.last_level()), s.meta.max_seq));
        gone.into_iter().for_each(|s| s.file.mark_obsolete(version));
        self.unsynced.close_before(new_floor);
        self.remove_logs(old_floor, new_floor);
        self.shared.wake_all();
        Ok(())
    }

    /// Records in the manifest how much of the logs was synced, so that a loss is detected, and what the
    /// clock has reached.
    pub fn publish_marks(&self) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let log_mark = self.shared.control.lock().logs.synced;
        let has_mark = log_mark.map(|mark| mark.next_seq) <= state.log_mark.map(|mark| mark.next_seq);
        if has_mark && self.shared.storage.clock.shown().is_none_or(|time| time <= state.time) {
            return Ok(());
        }
        let edit = Edit { log_mark, ..Edit::default() };
        self.record(log, state, edit, (&[], None)).map(drop).map_err(|e| self.shared.fail(e))
    }

    /// Makes the sequence numbers start after those of the segments. For a repair that has renumbered all
    /// rows: no log counts any more.
    pub fn restart_numbers(&self) -> Result<ManifestState> {
        let mut manifest = lock(&self.manifest);
        let (log, state) = manifest.as_mut().ok_or(Error::ReadOnly)?;
        let next_id = self.shared.storage.take_version();
        let last_seq = state.newest_in_segments();
        let later = ManifestState { next_id, last_seq, log_floor: next_id, log_mark: None, ..state.clone() };
        log.rewrite(&later)?;
        *state = later;
        Ok(state.clone())
    }

    /// Makes an edit durable that adds these segments and leads to the live set `next`. Returns the edit,
    /// with the number of the version that it makes. On an error, `state` has the segments that it had. So
    /// does the manifest, or it is torn and rewritten next time.
    ///
    /// Each version has its own number (`follow/versions.rs`), so the edit takes its number after a rewrite
    /// has taken one. If a version without a segment shared its number with a rewritten one that names it,
    /// the segment's file would be removed while somebody reads it.
    fn record(
        &self,
        manifest: &mut Manifest,
        state: &mut ManifestState,
        mut edit: Edit,
        (added, next): (&[LiveSegment], Option<&LiveSet>),
    ) -> Result<Edit> {
        let prepared = self.shared.check_writable().and_then(|()| {
            self.rewrite_if_needed(manifest, state)?;
            self.shared.storage.fs.sync_dir(&self.shared.storage.dir)?;
            edit.next_id = Some(self.shared.storage.take_version());
            edit.time = self.shared.storage.clock.shown();
            check_edit(&edit)?;
            state.check(&edit).map_err(Error::Internal)?;
            let checked = next.map_or(Ok(()), |next| next.check_disjoint(added));
            checked.map_err(|what| overlapping_levels(&what, &self.shared.storage.dir))
        });
        let unknown: Vec<&LiveSegment> =
            added.iter().filter(|s| !state.segments.contains_key(&s.meta.id)).collect();
        // If this fails, no manifest names them.
        prepared.inspect_err(|_| unknown.iter().for_each(|s| s.file.mark_obsolete(0)))?;
        let appended = manifest.append(&edit, state);
        appended.inspect_err(|_| self.shared.control.lock().doubtful.extend(unknown.into_iter().cloned()))?;
        Ok(edit)
    }

    /// Rewrites a manifest whose last edit failed. The new one certainly does not name that edit's segments.
    fn rewrite_if_needed(&self, manifest: &mut Manifest, state: &mut ManifestState) -> Result<()> {
        if manifest.needs_rewrite() {
            // Another process may have read the failed edit. The version without it must be a later one, also
            // for the next writer.
            let later = ManifestState { next_id: self.shared.storage.take_version(), ..state.clone() };
            manifest.rewrite(&later)?;
            *state = later;
            let doubtful = std::mem::take(&mut self.shared.control.lock().doubtful);
            doubtful.iter().for_each(|s| s.file.mark_obsolete(state.next_id.0));
        }
        Ok(())
    }

    /// Unlinks the logs from `from` up to, but not including, `to`. The next open removes any that stay.
    fn remove_logs(&self, from: FileId, to: FileId) {
        let ids = (from.0..to.0).map(FileId);
        for path in ids.map(|id| self.shared.storage.path_of(id, FileKind::Wal)) {
            if let Ok(Some(_)) = self.shared.storage.fs.file_len(&path)
                && let Err(error) = self.shared.storage.fs.remove(&path)
            {
                tracing::warn!(%error, "cannot remove a flushed log; the next open will retry");
            }
        }
    }
}
