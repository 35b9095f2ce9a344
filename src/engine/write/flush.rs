//! Flush: the oldest full memtable becomes segments of level 0, and its log is removed.

use super::Writer;
use super::log::{Log, LogHealth};
use crate::engine::backoff::TaskKind;
use crate::engine::compact::pick::TOMBSTONE_STREAK;
use crate::engine::control::TombstoneFlush;
use crate::engine::publish::{FlushedMemtable, LiveSetChange};
use crate::engine::storage::flushed::build_level0;
use crate::error::Result;
use crate::event::Event;
use crate::id::FileId;
use crate::memtable::Memtable;
use crate::sync::{Instant, lock, try_lock};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a memtable with tombstones waits if the log is locked when it is due.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

impl Writer {
    /// Flushes one memtable. The caller has set `flushing`. `next_log` is the first log needed after this.
    pub fn flush_one(&self, table: &Arc<Memtable>, next_log: FileId) -> Result<()> {
        self.shared.check_writable()?;
        let began = Instant::now();
        let policy = self.filters.policy();
        let built = build_level0(&self.shared.storage, table, &self.shared.live(), policy)
            .map_err(|e| self.shared.fail(e))?;
        let (segments, bytes) = (built.len() as u64, built.iter().map(|s| s.meta.file_bytes).sum());
        built.iter().for_each(|segment| self.filters.note_missing_sidecar(segment));
        // A failed log is removed with its memtable, even if that is empty.
        let last_seq = Some(table.last_seq()).filter(|seq| *seq > 0);
        let flushed = FlushedMemtable { table: Arc::clone(table), last_seq, next_log, next: None };
        self.publisher.publish(LiveSetChange {
            added: built,
            flushed: Some(flushed),
            ..LiveSetChange::default()
        })?;
        self.shared.storage.metrics.flushes.fetch_add(1, Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        self.shared.storage.events.emit(Event::Flush { segments, bytes, seconds });
        Ok(())
    }

    /// Hands the active memtable to a flush, unless that has been done. Tries again later if the log is
    /// locked: its holder may wait for a flush, and so for this thread.
    pub fn rotate_tombstones(&self) -> Result<()> {
        let Some(mut log) = try_lock(&self.log) else {
            self.shared.control.lock().flushes.tombstones =
                TombstoneFlush::Due(Instant::now() + LOCKED_PAUSE);
            return Ok(());
        };
        match &mut *log {
            Log::Active(active)
                if active.health == LogHealth::Sound
                    && (active.memtable.tombstones() >= TOMBSTONE_STREAK || active.memtable.has_ranges()) =>
            {
                self.rotate(active)
            }
            _ => Ok(()),
        }
    }

    /// Flushes everything written so far and waits for it.
    pub fn flush(&self) -> Result<()> {
        self.shared.check_writable()?;
        let last = {
            let mut log = lock(&self.log);
            if matches!(&*log, Log::Inherited(logs) if logs.memtable.is_empty()) {
                return Ok(());
            }
            let log = self.active_log(&mut log)?;
            self.in_flight.wait_for_all(&self.shared)?;
            self.resume(log)?;
            if !log.memtable.is_empty() {
                self.rotate(log)?;
            }
            log.id
        };
        self.shared.wait_for_work(|control| {
            control.flushes.next_logs().any(|next| next <= last).then_some(TaskKind::Flush)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::support::{eventually, fast_dir};

    /// A stalled write and an ingest both hold the log while they wait for a flush.
    #[test]
    fn i7_a_flush_never_waits_for_who_holds_the_log() {
        let dir = fast_dir();
        let db = Options::new().background_threads(2).open(dir.path().join("store")).unwrap();
        db.put("a", "1").unwrap();
        let (shared, writer) = (&db.engine().shared, &db.engine().writer);
        shared.control.lock().idleness.waiters += 1; // The store counts as idle.
        let mut log = lock(&writer.log);
        for _ in 0..2 {
            writer.note_tombstones(true, 0..0); // For each thread, as two writers do.
            std::thread::sleep(Duration::from_millis(100));
        }
        let Log::Active(active) = &mut *log else { panic!("no write has happened") };
        writer.rotate(active).unwrap();
        eventually("a flush", || shared.view().immutable.is_empty());
        drop(log);
        db.delete_range("a".."b").unwrap();
        eventually("the flush of the tombstones", || shared.live().max_seq() == 2);
        eventually("its end", || shared.control.lock().flushes.tombstones == TombstoneFlush::NotNeeded);
        shared.control.lock().idleness.waiters -= 1;
    }
}
