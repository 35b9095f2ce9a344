//! Flush: the oldest full memtable becomes a segment of level 0, and its log is removed.

use super::control::TombstoneFlush;
use super::inner::Inner;
use super::log::{Log, LogHealth};
use super::pick::TOMBSTONE_RUN;
use super::publish::{FlushedMemtable, LiveSetChange};
use super::retry::TaskKind;
use super::segment_builder::build_level0;
use crate::error::Result;
use crate::id::FileId;
use crate::memtable::Memtable;
use crate::sync::lock;
use std::ops::Range;
use std::sync::Arc;

impl Inner {
    /// Flushes one memtable. The caller has set `flushing`. `next_log` is the first log that is still needed afterwards.
    pub fn flush_one(&self, table: &Arc<Memtable>, next_log: FileId) -> Result<()> {
        self.check_writable()?;
        let policy = *lock(&self.filter_policy);
        let built = build_level0(&self.storage, table, &self.live(), policy).map_err(|e| self.fail(e))?;
        built.iter().for_each(|segment| self.note_missing_sidecar(segment));
        // A failed log is removed with its memtable, even if that is empty.
        let last_seq = Some(table.last_seq()).filter(|seq| *seq > 0);
        let flushed = FlushedMemtable { table: Arc::clone(table), last_seq, next_log };
        self.publish(LiveSetChange {
            added: built.into_iter().collect(),
            flushed: Some(flushed),
            ..LiveSetChange::default()
        })
    }

    /// Has an idle store flush the active memtable, so that a compaction can remove what it deletes: if it has many tombstones by now, or if
    /// a range that was just deleted covers a whole segment. `tombstones` is their number before and after the last write.
    pub fn note_tombstones(&self, covers_segment: bool, tombstones: Range<usize>) {
        if covers_segment || tombstones.start < TOMBSTONE_RUN && tombstones.end >= TOMBSTONE_RUN {
            lock(&self.control).tombstone_flush = TombstoneFlush::Due;
            self.work.notify_all();
        }
    }

    /// Hands the active memtable to a flush, unless that was done meanwhile.
    pub fn rotate_tombstones(&self) -> Result<()> {
        let mut log = lock(&self.log);
        match &mut *log {
            Log::Active(active)
                if active.health == LogHealth::Sound
                    && (active.memtable.tombstones() >= TOMBSTONE_RUN || active.memtable.has_ranges()) =>
            {
                self.rotate(active)
            }
            _ => Ok(()),
        }
    }

    /// Flushes everything written so far and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.check_writable()?;
        let last = {
            let mut log = lock(&self.log);
            if matches!(&*log, Log::Inherited(logs) if logs.memtable.is_empty()) {
                return Ok(());
            }
            let log = self.active_log(&mut log)?;
            self.resume(log)?;
            if !log.memtable.is_empty() {
                self.rotate(log)?;
            }
            log.id
        };
        self.wait_for_work(|control| {
            let mut unflushed = control.to_flush.iter().map(|(_, next)| *next).chain(control.flushing);
            unflushed.any(|next| next <= last).then_some(TaskKind::Flush)
        })
    }
}
