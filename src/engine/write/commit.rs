//! The write path: group commit to the log, then the memtable, then the visible sequence number.
//!
//! 1. The writer that holds the `log` lock commits a group of batches (`submit.rs`).
//! 2. The group is appended to the log at once, with one fdatasync if any batch asks for it.
//! 3. Only then do its entries enter the memtable. The visible sequence number moves past the group at once.
//!    If others wait for the log, the group enters the memtable after the log is unlocked (`in_flight.rs`).
//! 4. Writers wait before step 2 when flushes and compactions cannot keep up.

use super::Writer;
use super::log::{ActiveLog, EncodedBatch, Log, LogHealth, apply};
use super::stale::clear_stale;
use crate::engine::backoff::TaskKind;
use crate::engine::compact::pick::TOMBSTONE_STREAK;
use crate::engine::compact::reservation::Reservation;
use crate::engine::control::{Control, TombstoneFlush};
use crate::engine::latency::Operation;
use crate::engine::shared::Seen;
use crate::engine::storage::segment_builder::RANGE_BYTES_MAX;
use crate::error::{Error, Result};
use crate::event::{Event, WriteStall};
use crate::key::{Seq, check_next_seq};
use crate::memtable::Memtable;
use crate::sync::{Instant, lock};
use crate::wal;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How many full memtables may wait for a flush, or be in one, before writers stall.
pub(crate) const MEMTABLES_WAITING_MAX: usize = 2;
/// The numbers of level-0 segments at which writers slow down and stall. RocksDB's defaults.
pub(crate) const LEVEL0_SLOWDOWN: usize = 20;
const LEVEL0_STOP: usize = 36;
/// A longer stall is worth a line in the log.
const NOTE_STALL_AFTER: Duration = Duration::from_secs(1);
/// The write rate at the slowdown threshold. It falls linearly to an eighth of this at the stop threshold.
const SLOWDOWN_BYTES_PER_SEC: u64 = 64 << 20;
/// Writers accumulate their delays up to this length: most of a shorter sleep would be timer slack.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// A group that is in the log and not in the memtable yet.
pub(crate) struct Insertion {
    table: Arc<Memtable>,
    first_seq: Seq,
    /// Its last sequence number.
    pub last: Seq,
    bytes: usize,
}

impl Writer {
    /// Appends a group to the log, and inserts it into the memtable, unless it returns what is to be inserted
    /// without the log.
    #[inline(always)]
    pub fn commit(&self, log: &mut Log, group: &mut [EncodedBatch]) -> Result<Option<Insertion>> {
        self.shared.poison_on_panic(|| self.commit_group(self.active_log(log)?, group))
    }

    fn commit_group(&self, log: &mut ActiveLog, group: &mut [EncodedBatch]) -> Result<Option<Insertion>> {
        self.shared.check_writable()?;
        self.resume(log)?;
        let (mut count, mut bytes, mut has_conditions, mut deletes_ranges) = (0, 0, false, false);
        let (mut has_heads, mut syncs) = (false, false);
        for batch in group.iter() {
            count += Seq::from(batch.count);
            bytes += batch.payload.len();
            has_conditions |= batch.condition.is_some();
            deletes_ranges |= batch.deletes_ranges;
            has_heads |= batch.has_heads;
            syncs |= batch.sync;
        }
        check_next_seq(log.next_seq.saturating_add(count))?;
        if has_conditions || has_heads || self.keeps_recent() || log.recent.is_kept() {
            if has_heads {
                group.iter_mut().for_each(EncodedBatch::refuse_dropped);
                self.shared.storage.keyspaces.note_head();
            }
            if has_conditions {
                self.in_flight.wait_for_all(&self.shared)?;
            }
            // The log stays locked, so a rotation in `make_room` makes nothing stale.
            self.check_conditions(log, group);
            bytes = group.iter().map(|batch| batch.payload.len()).sum();
            if bytes == 0 {
                return Ok(None); // All of it was stale or refused.
            }
        }
        self.make_room(log, bytes)?;
        let records = group.iter().filter(|batch| batch.count > 0).scan(log.next_seq, |next, batch| {
            let first_seq = *next;
            *next += Seq::from(batch.count);
            Some(wal::LogRecord { first_seq, count: batch.count, payload: &batch.payload })
        });
        let before = log.writer.len();
        let appended = log.writer.append_group(records);
        appended.map_err(|e| self.fail_log(log, e))?;
        if syncs {
            self.sync_log(log)?;
        }
        self.shared.storage.metrics.log_bytes.fetch_add(log.writer.len() - before, Relaxed);
        self.shared.storage.metrics.user_bytes.fetch_add(bytes as u64, Relaxed);
        let first_seq = log.next_seq;
        for batch in group.iter_mut() {
            batch.payload = log.arena.store(std::mem::take(&mut batch.payload));
            if log.recent.is_kept() {
                let bytes_max = self.shared.storage.options.transaction_bytes;
                log.recent.add(log.next_seq, &batch.payload, bytes_max);
            }
            log.next_seq += Seq::from(batch.count);
        }
        let last = log.next_seq - 1;
        // Without others, the handover would only cost time.
        let is_alone = self.in_flight.bytes() == 0 && self.waiting.load(Relaxed) == 0;
        if !is_alone && !deletes_ranges && !has_conditions {
            self.in_flight.begin(last, bytes);
            return Ok(Some(Insertion { table: Arc::clone(&log.memtable), first_seq, last, bytes }));
        }
        self.in_flight.wait_for_all(&self.shared)?;
        self.insert(&log.memtable, first_seq, group, || self.shared.show(last));
        Ok(None)
    }

    /// Inserts a group into the memtable, and then shows it.
    fn insert(&self, table: &Memtable, first_seq: Seq, group: &mut [EncodedBatch], show: impl FnOnce()) {
        let (tombstones, mut covers) = (table.tombstones(), false);
        let mut on_range = |from: &[u8], to: Option<&[u8]>| {
            covers = covers || self.shared.view().live.has_segment_within(from, to);
        };
        let mut next = first_seq;
        for batch in group {
            let payload = std::mem::take(&mut batch.payload);
            apply(table, &self.shared.storage, next, payload, &mut on_range);
            next += Seq::from(batch.count);
        }
        show();
        self.note_tombstones(covers, tombstones..table.tombstones());
    }

    /// Inserts a group that is in the log, while others append to the log and insert. Returns once it is
    /// visible.
    #[cold]
    pub fn insert_beside_others(&self, insertion: Insertion, group: &mut [EncodedBatch]) -> Result<()> {
        let Insertion { table, first_seq, last, bytes } = insertion;
        let end = || self.in_flight.end(last, bytes, &self.shared);
        self.shared.poison_on_panic(|| self.insert(&table, first_seq, group, end));
        self.in_flight.wait_for(last, &self.shared)
    }

    /// Empties the batches whose conditions may no longer hold.
    #[cold]
    fn check_conditions(&self, log: &mut ActiveLog, group: &mut [EncodedBatch]) {
        group.iter_mut().for_each(|batch| batch.refuse_expired(|| self.shared.storage.clock.now()));
        let now = Seen { seq: log.next_seq - 1, epoch: self.shared.epoch() };
        log.recent.keep(self.keeps_recent(), now);
        // Mostly, a batch is alone, and nobody has written since.
        if !matches!(group, [EncodedBatch { condition: Some(condition), .. }] if condition.seen == now) {
            clear_stale(group, log, now.epoch, &self.shared.storage.header.hasher);
        }
    }

    /// The log that accepts writes. The first call starts it.
    #[inline]
    pub fn active_log<'a>(&self, log: &'a mut Log) -> Result<&'a mut ActiveLog> {
        if let Log::Inherited(inherited) = log {
            *log = Log::Active(self.start_log_of_its_own(inherited)?);
        }
        match log {
            Log::Active(active) => Ok(active),
            Log::None | Log::Inherited(_) => Err(Error::ReadOnly),
            Log::Closed => Err(Error::Closing),
        }
    }

    /// Starts the log at once, because what was replayed is not durable yet.
    pub fn start(&self) -> Result<()> {
        self.active_log(&mut lock(&self.log)).map(|_| ())
    }

    /// Replaces a failed log before a write or a sync: how a store whose log failed for lack of space accepts
    /// writes again without being reopened (I5).
    ///
    /// 1. The writers of the group whose append or sync failed get the error. The group is not in the
    ///    memtable, and the next group reuses its sequence numbers. The file is never written again.
    /// 2. Every acknowledged write is in a memtable. The next write starts a new log and hands the memtable
    ///    to a background thread.
    /// 3. Once that memtable is flushed, the manifest's floor is at the new log, and writes resume. A crash
    ///    before that leaves the old log, perhaps with the failed group, and an empty new one. After that,
    ///    the old log no longer matters.
    #[inline]
    pub fn resume(&self, log: &mut ActiveLog) -> Result<()> {
        if log.health == LogHealth::Sound { Ok(()) } else { self.replace_failed_log(log) }
    }

    #[cold]
    fn replace_failed_log(&self, log: &mut ActiveLog) -> Result<()> {
        if log.health == LogHealth::Failed {
            self.rotate(log)?;
        }
        let id = log.id;
        self.shared.wait_for_work(|control| (control.logs.floor < id).then_some(TaskKind::Flush))?;
        log.health = LogHealth::Sound;
        tracing::info!("earlier writes are in segments; the store accepts writes again");
        Ok(())
    }

    /// Makes an idle store flush the active memtable, so that a compaction can remove what it deletes: if it
    /// now has many tombstones, or if a newly deleted range covers a whole segment. `tombstones` is their
    /// number before and after the last write.
    #[inline]
    pub fn note_tombstones(&self, covers_segment: bool, tombstones: Range<usize>) {
        if covers_segment || tombstones.start < TOMBSTONE_STREAK && tombstones.end >= TOMBSTONE_STREAK {
            self.plan_tombstone_flush();
        }
    }

    #[cold]
    fn plan_tombstone_flush(&self) {
        self.shared.control.lock().flushes.tombstones = TombstoneFlush::Due(Instant::now());
        self.shared.wake_workers();
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
        let began = self.shared.storage.latencies.is_some().then(Instant::now);
        for (_, mut earlier) in self.publisher.unsynced().take() {
            earlier.sync().map_err(|e| self.fail_log(log, e))?;
        }
        log.writer.sync().map_err(|e| self.fail_log(log, e))?;
        self.shared.control.lock().logs.synced = Some(log.mark());
        if let Some(began) = began {
            self.shared.storage.note_latency(Operation::Commit, began.elapsed());
        }
        Ok(())
    }

    /// Rotates a full memtable. Slows the writer down while level 0 grows, and stalls it while compactions or
    /// flushes cannot keep up.
    fn make_room(&self, log: &mut ActiveLog, bytes: usize) -> Result<()> {
        let level0 = self.shared.level0_depth();
        // Even with room in the memtable: a process that never runs long enough to fill it would add a
        // segment at each open.
        if self.is_level0_at_stop(level0) {
            self.wait_for_level0()?;
        } else if level0 >= LEVEL0_SLOWDOWN {
            self.slow_down(log, level0, bytes);
        }
        let in_flight = self.in_flight.bytes();
        let has_room = (log.memtable.bytes() + in_flight + bytes) as u64
            <= self.shared.storage.options.memtable_bytes
            && log.memtable.range_bytes() < RANGE_BYTES_MAX;
        if has_room || in_flight == 0 && log.memtable.is_empty() {
            return Ok(());
        }
        self.stall(|control| {
            if control.flushes.memtables() < MEMTABLES_WAITING_MAX {
                self.is_level0_at_stop(self.shared.level0_depth()).then_some(TaskKind::Compaction)
            } else {
                Some(TaskKind::Flush)
            }
        })?;
        self.rotate(log)
    }

    /// Stalls the writer while level 0 is full.
    pub fn wait_for_level0(&self) -> Result<()> {
        self.stall(|_| self.is_level0_at_stop(self.shared.level0_depth()).then_some(TaskKind::Compaction))
    }

    fn is_level0_at_stop(&self, level0: usize) -> bool {
        level0 >= LEVEL0_STOP.max(self.shared.storage.options.level0_trigger)
    }

    /// Stalls the writer until `wanted` returns `None`. If that takes a while, logs what it waits for.
    fn stall(&self, mut wanted: impl FnMut(&mut Control) -> Option<TaskKind>) -> Result<()> {
        let (stalled, mut waited_for) = (Instant::now(), None);
        let mut waiting = |control: &mut Control| {
            let kind = wanted(control);
            waited_for = kind.and_then(WriteStall::of).or(waited_for);
            let metric = kind.and_then(WriteStall::of).map_or(0, WriteStall::to_metric);
            self.shared.storage.metrics.write_stall.store(metric, Relaxed);
            kind
        };
        // A simulated schedule has no use for a wait that ends by itself.
        let limit = (!cfg!(sidebloom_schedules)).then_some(NOTE_STALL_AFTER);
        let mut outcome = self.shared.wait_for_work_within(limit, &mut waiting);
        if let Ok(false) = outcome {
            self.note_stall();
            outcome = self.shared.wait_for_work(&mut waiting).map(|()| true);
        }
        self.shared.storage.metrics.write_stall.store(0, Relaxed);
        let time = stalled.elapsed();
        self.shared.storage.metrics.stall_micros.fetch_add(time.as_micros() as u64, Relaxed);
        if let Some(reason) = waited_for.map(WriteStall::name) {
            self.shared.storage.metrics.stalls.fetch_add(1, Relaxed);
            self.shared.storage.note_latency(Operation::Stall, time);
            self.shared.storage.events.emit(Event::Stall { reason, seconds: time.as_secs_f64() });
        }
        outcome.map(|_| ())
    }

    #[cold]
    fn note_stall(&self) {
        let level0 = self.shared.level0_depth();
        let control = self.shared.control.lock();
        let memtables = control.flushes.memtables();
        let compacting: usize = control.compactions.running.iter().map(Reservation::segments).sum();
        drop(control);
        self.shared.storage.events.emit(Event::LongStall {
            level0_segments: level0 as u64,
            memtables_waiting: memtables as u64,
            compacting_segments: compacting as u64,
        });
    }

    fn slow_down(&self, log: &mut ActiveLog, level0: usize, bytes: usize) {
        let span = (LEVEL0_STOP - LEVEL0_SLOWDOWN) as u64;
        let over = (level0 - LEVEL0_SLOWDOWN).min(span as usize) as u64;
        let bytes_per_sec = SLOWDOWN_BYTES_PER_SEC / 8 * (8 * span - 7 * over) / span;
        log.sleep_debt += Duration::from_nanos(bytes as u64 * 1_000_000_000 / bytes_per_sec);
        if log.sleep_debt >= SLEEP_MIN {
            let started = Instant::now();
            crate::sync::sleep(log.sleep_debt);
            let time = started.elapsed();
            self.shared.storage.metrics.stall_micros.fetch_add(time.as_micros() as u64, Relaxed);
            self.shared.storage.note_latency(Operation::Stall, time);
            log.sleep_debt = Duration::ZERO;
        }
    }
}
