//! The write path: group commit to the log, then the memtable, then the visible sequence number.
//!
//! 1. A writer queues its batch and waits for the `log` lock. Whoever gets it commits a group of queued batches; the other writers of the
//!    group find their result.
//! 2. The group is appended to the log at once, with one fdatasync if any batch asks for it.
//! 3. Only then do its entries enter the memtable, and the visible sequence number moves past the whole group at once.

pub(crate) mod disk_full;
pub(crate) mod first_write;
pub(crate) mod flush;
pub(crate) mod log;

use self::log::{ActiveLog, EncodedBatch, Log, QueuedBatch, apply};
use crate::engine::compact::reservation::Reservation;
use crate::engine::control::Control;
use crate::engine::metrics::{WriteStall, add};
use crate::engine::retry::TaskKind;
use crate::engine::shared::Inner;
use crate::error::Result;
use crate::id::FileKind;
use crate::key::{Seq, check_next_seq};
use crate::memtable::Memtable;
use crate::options::Durability;
use crate::sync::Instant;
use crate::sync::atomic::Ordering;
use crate::sync::{lock, try_lock};
use crate::wal::{self, Batch};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How many full memtables may wait for a flush, or be in one, before writers stall.
const MEMTABLES_WAITING_MAX: usize = 2;
/// The number of segments in level 0 at which writers are slowed down, and at which they stall. RocksDB's defaults.
pub(crate) const LEVEL0_SLOWDOWN: usize = 20;
const LEVEL0_STOP: usize = 36;
/// A stall that takes longer is worth a line in the log.
const NOTE_STALL_AFTER: Duration = Duration::from_secs(1);
/// The write rate at the slowdown threshold. It falls linearly to an eighth of this at the stop threshold.
const SLOWDOWN_BYTES_PER_SEC: u64 = 64 << 20;
/// Writers accumulate their delays up to this length: most of a shorter sleep would be timer slack.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// Maximum size of a group, in bytes, so that its first batch does not wait for too many others.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// A memtable or segment with so many bytes of range tombstones is full. With those of one more batch they still fit into one block.
pub(crate) const RANGE_BYTES_MAX: usize = 32 << 20;

impl Inner {
    /// Commits a batch atomically.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        self.check_writable()?;
        batch.validate()?;
        let sync = durability == Durability::Sync;
        if batch.is_empty() {
            return if sync { self.sync() } else { Ok(()) };
        }
        let batch = EncodedBatch { count: batch.len() as u32, payload: batch.into_bytes(), sync };
        match try_lock(&self.log) {
            Some(mut log) => self.commit(&mut log, vec![batch]),
            None => self.write_in_group(batch),
        }
    }

    /// Queues a batch while another writer holds the log. Whoever locks the log next commits it.
    fn write_in_group(&self, batch: EncodedBatch) -> Result<()> {
        let mine = Arc::new(QueuedBatch::new(batch));
        lock(&self.write_queue).push(Arc::clone(&mine));
        loop {
            let mut log = lock(&self.log);
            if let Some(result) = lock(&mine.result).take() {
                return result;
            }
            self.check_writable()?; // If the thread that took this batch has panicked, there is no result.
            let group = self.take_group();
            let batches = group.iter().filter_map(|queued| lock(&queued.batch).take()).collect();
            let result = self.commit(&mut log, batches);
            group.iter().for_each(|queued| *lock(&queued.result) = Some(result.clone()));
        }
    }

    /// Takes the oldest batches from the queue, as many as fit into one group.
    fn take_group(&self) -> Vec<Arc<QueuedBatch>> {
        let mut queue = lock(&self.write_queue);
        let mut bytes = 0;
        let fits = queue.iter().take_while(|queued| {
            bytes += queued.bytes;
            bytes <= GROUP_BYTES_MAX
        });
        let n = fits.count().max(1).min(queue.len());
        queue.drain(..n).collect()
    }

    fn commit(&self, log: &mut Log, group: Vec<EncodedBatch>) -> Result<()> {
        self.poison_on_panic(|| self.commit_group(self.active_log(log)?, group))
    }

    fn commit_group(&self, log: &mut ActiveLog, group: Vec<EncodedBatch>) -> Result<()> {
        self.check_writable()?;
        self.resume(log)?;
        let count: u64 = group.iter().map(|batch| u64::from(batch.count)).sum();
        check_next_seq(log.next_seq.saturating_add(count))?;
        let bytes: usize = group.iter().map(|batch| batch.payload.len()).sum();
        self.make_room(log, bytes)?;
        let mut seq = log.next_seq;
        let record = |batch| {
            let &EncodedBatch { ref payload, count, .. } = batch;
            let first_seq = seq;
            seq += Seq::from(count);
            wal::LogRecord { first_seq, count, payload }
        };
        let records: Vec<wal::LogRecord<'_>> = group.iter().map(record).collect();
        let before = log.writer.len();
        let appended = log.writer.append_group(&records);
        appended.map_err(|e| self.fail_log(log, e))?;
        if group.iter().any(|batch| batch.sync) {
            self.sync_log(log)?;
        }
        add(&self.storage.metrics.log_bytes, log.writer.len() - before);
        add(&self.storage.metrics.user_bytes, bytes as u64);
        let (tombstones, mut covers) = (log.memtable.tombstones(), false);
        let mut on_range = |from: &[u8], to: Option<&[u8]>| {
            covers = covers || self.view.load().live.has_segment_within(from, to);
        };
        for batch in group {
            let payload = log.arena.store(batch.payload);
            apply(&log.memtable, &self.storage, log.next_seq, payload, &mut on_range);
            log.next_seq += Seq::from(batch.count);
        }
        self.visible.store(log.next_seq - 1, Ordering::Release);
        self.note_tombstones(covers, tombstones..log.memtable.tombstones());
        Ok(())
    }

    /// Makes all acknowledged writes durable.
    pub fn sync(&self) -> Result<()> {
        self.check_writable()?;
        let mut log = lock(&self.log);
        self.check_writable()?;
        if matches!(&*log, Log::Inherited(_)) {
            return Ok(());
        }
        let log = self.active_log(&mut log)?;
        self.resume(log)?;
        self.sync_log(log)
    }

    /// Syncs the unsynced logs, oldest first.
    pub fn sync_log(&self, log: &mut ActiveLog) -> Result<()> {
        let unsynced = std::mem::take(&mut *lock(&self.unsynced));
        for (_, mut earlier) in unsynced {
            earlier.sync().map_err(|e| self.fail_log(log, e))?;
        }
        log.writer.sync().map_err(|e| self.fail_log(log, e))?;
        self.control.lock().synced = Some(log.mark());
        Ok(())
    }

    /// Rotates a full memtable. Slows the writer down while level 0 grows, and stalls it while compaction or flushing cannot keep up.
    fn make_room(&self, log: &mut ActiveLog, bytes: usize) -> Result<()> {
        let level0 = self.view.load().live.levels()[0].segments().len();
        // Even with room in the memtable: a process that never runs long enough to fill it would add a segment at each
        // open.
        if self.level0_is_at_stop() {
            self.wait_for_level0()?;
        } else if level0 >= LEVEL0_SLOWDOWN {
            self.slow_down(log, level0, bytes);
        }
        let has_room = log.memtable.bytes() as u64 + bytes as u64 <= self.storage.options.memtable_bytes
            && log.memtable.range_bytes() < RANGE_BYTES_MAX;
        if has_room || log.memtable.is_empty() {
            return Ok(());
        }
        self.stall(|control| {
            let memtables = control.to_flush.len() + usize::from(control.flushing.is_some());
            match memtables < MEMTABLES_WAITING_MAX {
                true => self.level0_is_at_stop().then_some(TaskKind::Compaction),
                false => Some(TaskKind::Flush),
            }
        })?;
        self.rotate(log)
    }

    /// Stalls the writer while level 0 is full.
    pub fn wait_for_level0(&self) -> Result<()> {
        self.stall(|_| self.level0_is_at_stop().then_some(TaskKind::Compaction))
    }

    fn level0_is_at_stop(&self) -> bool {
        self.view.load().live.levels()[0].segments().len()
            >= LEVEL0_STOP.max(self.storage.options.level0_trigger)
    }

    /// Stalls the writer until `wanted` returns `None`. If that takes a while, the log of the program says what it waits for.
    fn stall(&self, mut wanted: impl FnMut(&mut Control) -> Option<TaskKind>) -> Result<()> {
        let stalled = Instant::now();
        let mut waiting = |control: &mut Control| {
            let kind = wanted(control);
            let metric = kind.map_or(0, |kind| WriteStall::of(kind).map_or(0, WriteStall::to_metric));
            self.storage.metrics.write_stall.store(metric, Relaxed);
            kind
        };
        // A simulated schedule has no use for a wait that ends by itself.
        let limit = (!cfg!(sidebloom_schedules)).then_some(NOTE_STALL_AFTER);
        let mut outcome = self.wait_for_work_within(limit, &mut waiting);
        if let Ok(false) = outcome {
            self.note_stall();
            outcome = self.wait_for_work(&mut waiting).map(|()| true);
        }
        self.storage.metrics.write_stall.store(0, Relaxed);
        add(&self.storage.metrics.stall_micros, stalled.elapsed().as_micros() as u64);
        outcome.map(|_| ())
    }

    #[cold]
    fn note_stall(&self) {
        let level0 = self.view.load().live.levels()[0].segments().len();
        let control = self.control.lock();
        let memtables = control.to_flush.len() + usize::from(control.flushing.is_some());
        let compacting: usize = control.running.iter().map(Reservation::segments).sum();
        drop(control);
        tracing::warn!(
            level0,
            memtables,
            compacting,
            "writes wait until fewer than {LEVEL0_STOP} segments are in level 0 and fewer than {MEMTABLES_WAITING_MAX} memtables wait for a flush; \
             compactions of {compacting} segments are running"
        );
    }

    fn slow_down(&self, log: &mut ActiveLog, level0: usize, bytes: usize) {
        let span = (LEVEL0_STOP - LEVEL0_SLOWDOWN) as u64;
        let over = (level0 - LEVEL0_SLOWDOWN).min(span as usize) as u64;
        let bytes_per_sec = SLOWDOWN_BYTES_PER_SEC / 8 * (8 * span - 7 * over) / span;
        log.sleep_debt += Duration::from_nanos(bytes as u64 * 1_000_000_000 / bytes_per_sec);
        if log.sleep_debt >= SLEEP_MIN {
            let started = Instant::now();
            crate::sync::sleep(log.sleep_debt);
            add(&self.storage.metrics.stall_micros, started.elapsed().as_micros() as u64);
            log.sleep_debt = Duration::ZERO;
        }
    }

    /// Starts a new log and memtable, and hands the full memtable to a background thread.
    pub fn rotate(&self, log: &mut ActiveLog) -> Result<()> {
        let fresh = Arc::new(Memtable::new(self.storage.options.memtable_bytes)?);
        self.start_log(log)?;
        let full = std::mem::replace(&mut log.memtable, fresh);
        let mut control = self.control.lock();
        control.to_flush.push_back((Arc::clone(&full), log.id));
        control.last_full = Some(Instant::now());
        let before = self.change_view(&mut control, |view| {
            view.active = Arc::clone(&log.memtable);
            view.immutable.insert(0, full);
        });
        drop(control);
        drop(before);
        self.work.notify_all();
        Ok(())
    }

    /// Continues in a new log, with the same memtable.
    pub fn start_log(&self, log: &mut ActiveLog) -> Result<()> {
        let id = self.storage.take_id();
        let path = self.storage.path_of(id, FileKind::Wal);
        let writer =
            wal::LogWriter::create(&*self.storage.fs, &path, id, self.storage.header.store_id, log.next_seq)
                .inspect_err(|e| self.count_shortage(e))
                .map_err(|e| self.fail(e))?;
        let earlier = std::mem::replace(&mut log.writer, writer);
        let earlier = (std::mem::replace(&mut log.id, id), earlier);
        self.retire(log, earlier);
        Ok(())
    }
}
