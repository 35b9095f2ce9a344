//! The write path: group commit to the log, then the memtable, then the visible sequence number.
//!
//! 1. A writer queues its batch and waits for the `log` lock. The writer that gets it commits a group of
//!    queued batches; the others in the group find their result.
//! 2. The group is appended to the log at once, with one fdatasync if any batch asks for it.
//! 3. Only then do its entries enter the memtable. The visible sequence number moves past the group at once.

use super::Writer;
use super::log::{ActiveLog, EncodedBatch, Log, QueuedBatch, apply};
use super::stall::{LEVEL0_SLOWDOWN, MEMTABLES_WAITING_MAX};
use crate::engine::backoff::TaskKind;
use crate::engine::metrics::add;
use crate::engine::storage::segment_builder::RANGE_BYTES_MAX;
use crate::error::Result;
use crate::key::{Seq, check_next_seq};
use crate::options::Durability;
use crate::sync::{lock, try_lock};
use crate::wal::{self, Batch};
use std::sync::Arc;

/// Maximum size of a group, in bytes, so that its first batch does not wait for too many others.
const GROUP_BYTES_MAX: usize = 1 << 20;

impl Writer {
    /// Commits a batch atomically.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        batch.validate()?;
        let sync = durability == Durability::Sync;
        if batch.is_empty() {
            return if sync { self.sync() } else { self.shared.check_writable() };
        }
        // The commit checks the rest, but after a fork nobody may unlock the log.
        self.shared.storage.process.check()?;
        let mut batch = EncodedBatch { count: batch.len() as u32, payload: batch.into_bytes(), sync };
        match try_lock(&self.log) {
            Some(mut log) => self.commit(&mut log, std::slice::from_mut(&mut batch)),
            None => self.write_in_group(batch),
        }
    }

    /// Queues a batch while another writer holds the log. Whoever locks the log next commits it.
    fn write_in_group(&self, batch: EncodedBatch) -> Result<()> {
        let mine = Arc::new(QueuedBatch::new(batch));
        lock(&self.queue).push(Arc::clone(&mine));
        loop {
            let mut log = lock(&self.log);
            if let Some(result) = lock(&mine.result).take() {
                return result;
            }
            // If the thread that took this batch panicked, there is no result.
            self.shared.check_writable()?;
            let group = self.take_group();
            let mut batches: Vec<_> = group.iter().filter_map(|queued| lock(&queued.batch).take()).collect();
            let result = self.commit(&mut log, &mut batches);
            group.iter().for_each(|queued| *lock(&queued.result) = Some(result.clone()));
        }
    }

    /// Takes the oldest batches from the queue, as many as fit into one group.
    fn take_group(&self) -> Vec<Arc<QueuedBatch>> {
        let mut queue = lock(&self.queue);
        let mut bytes = 0;
        let fits = queue.iter().take_while(|queued| {
            bytes += queued.bytes;
            bytes <= GROUP_BYTES_MAX
        });
        let n = fits.count().max(1).min(queue.len());
        queue.drain(..n).collect()
    }

    fn commit(&self, log: &mut Log, group: &mut [EncodedBatch]) -> Result<()> {
        self.shared.poison_on_panic(|| self.commit_group(self.active_log(log)?, group))
    }

    fn commit_group(&self, log: &mut ActiveLog, group: &mut [EncodedBatch]) -> Result<()> {
        self.shared.check_writable()?;
        self.resume(log)?;
        let count: u64 = group.iter().map(|batch| u64::from(batch.count)).sum();
        check_next_seq(log.next_seq.saturating_add(count))?;
        let bytes: usize = group.iter().map(|batch| batch.payload.len()).sum();
        self.make_room(log, bytes)?;
        let records = group.iter().scan(log.next_seq, |next, batch| {
            let first_seq = *next;
            *next += Seq::from(batch.count);
            Some(wal::LogRecord { first_seq, count: batch.count, payload: &batch.payload })
        });
        let before = log.writer.len();
        let appended = log.writer.append_group(records);
        appended.map_err(|e| self.fail_log(log, e))?;
        if group.iter().any(|batch| batch.sync) {
            self.sync_log(log)?;
        }
        add(&self.shared.storage.metrics.log_bytes, log.writer.len() - before);
        add(&self.shared.storage.metrics.user_bytes, bytes as u64);
        let (tombstones, mut covers) = (log.memtable.tombstones(), false);
        let mut on_range = |from: &[u8], to: Option<&[u8]>| {
            covers = covers || self.shared.view().live.has_segment_within(from, to);
        };
        for batch in group {
            let payload = log.arena.store(std::mem::take(&mut batch.payload));
            apply(&log.memtable, &self.shared.storage, log.next_seq, payload, &mut on_range);
            log.next_seq += Seq::from(batch.count);
        }
        self.shared.show(log.next_seq - 1);
        self.note_tombstones(covers, tombstones..log.memtable.tombstones());
        Ok(())
    }

    /// Makes all acknowledged writes durable.
    pub fn sync(&self) -> Result<()> {
        self.shared.check_writable()?;
        let mut log = lock(&self.log);
        self.shared.check_writable()?;
        if matches!(&*log, Log::Inherited(_)) {
            return Ok(());
        }
        let log = self.active_log(&mut log)?;
        self.resume(log)?;
        self.sync_log(log)
    }

    /// Syncs the unsynced logs, oldest first.
    pub fn sync_log(&self, log: &mut ActiveLog) -> Result<()> {
        for (_, mut earlier) in self.publisher.unsynced().take() {
            earlier.sync().map_err(|e| self.fail_log(log, e))?;
        }
        log.writer.sync().map_err(|e| self.fail_log(log, e))?;
        self.shared.control.lock().logs.synced = Some(log.mark());
        Ok(())
    }

    /// Rotates a full memtable. Slows the writer down while level 0 grows, and stalls it while compactions or
    /// flushes cannot keep up.
    fn make_room(&self, log: &mut ActiveLog, bytes: usize) -> Result<()> {
        let level0 = self.shared.view().live.levels()[0].segments().len();
        // Even with room in the memtable: a process that never runs long enough to fill it would add a
        // segment at each open.
        if self.level0_is_at_stop() {
            self.wait_for_level0()?;
        } else if level0 >= LEVEL0_SLOWDOWN {
            self.slow_down(log, level0, bytes);
        }
        let has_room = log.memtable.bytes() as u64 + bytes as u64
            <= self.shared.storage.options.memtable_bytes
            && log.memtable.range_bytes() < RANGE_BYTES_MAX;
        if has_room || log.memtable.is_empty() {
            return Ok(());
        }
        self.stall(|control| {
            if control.flushes.memtables() < MEMTABLES_WAITING_MAX {
                self.level0_is_at_stop().then_some(TaskKind::Compaction)
            } else {
                Some(TaskKind::Flush)
            }
        })?;
        self.rotate(log)
    }
}
