//! The write path: group commit into the log, then the memtable, then visible.
//!
//! 1. A writer queues its batch and takes the `log` lock. Whoever gets it commits the whole queue; the others find their batch done.
//! 2. One append to the log for the group; one fdatasync if any of the group asks for it.
//! 3. Only then the memtable learns the entries, and the visible sequence number moves past the whole batch at once.

use super::core::{Control, Core, lock, try_lock};
use super::failure::Job;
use super::metrics::add;
use super::options::Durability;
use super::resume::Health;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::LogMark;
use crate::memtable::Memtable;
use crate::wal::{self, Batch};
use bytes::{Bytes, BytesMut};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Full memtables that may be waiting or being flushed before writers wait too.
const MEMTABLES_WAITING_MAX: usize = 2;
/// Level-0 segments at which writes are slowed, and at which they stop.
pub(crate) const LEVEL0_SLOWDOWN: usize = 16;
const LEVEL0_STOP: usize = 32;
/// At the slowdown threshold a writer is held to this rate; it falls linearly to an eighth at the stop.
const SLOWDOWN_BYTES_PER_SEC: u64 = 64 << 20;
/// Sleeps are saved up to this length: shorter ones would mostly be the timer's own slack.
const SLEEP_MIN: Duration = Duration::from_millis(1);
/// A group takes no further batches beyond this many bytes, so that the first of them does not wait for all.
const GROUP_BYTES_MAX: usize = 1 << 20;

/// What the writer at the head of the queue works on.
pub(crate) struct Log {
    pub writer: wal::LogWriter,
    pub id: FileId,
    pub active: Arc<Memtable>,
    pub next_seq: Seq,
    pub arena: Arena,
    /// Slowdown not slept yet.
    pub sleep_debt: Duration,
    pub health: Health,
}

impl Log {
    /// What is durable once this log and those before it were synced.
    fn mark(&self) -> LogMark {
        LogMark { log: self.id, bytes: self.writer.len(), next_seq: self.writer.next_seq() }
    }
}

/// Where the memtables' entries live: chunks that many batches share. An allocation of their own would have each entry freed by
/// another thread than the one that made it, at the cost of the allocator's lock.
#[derive(Default)]
pub(crate) struct Arena {
    chunk: BytesMut,
}

impl Arena {
    const CHUNK_BYTES: usize = 64 << 10;

    /// The batch in shared memory; a large one stays where it is.
    fn keep(&mut self, payload: Bytes) -> Bytes {
        if payload.len() > Self::CHUNK_BYTES / 16 {
            return payload;
        }
        if self.chunk.capacity() < payload.len() {
            self.chunk = BytesMut::with_capacity(Self::CHUNK_BYTES);
        }
        self.chunk.extend_from_slice(&payload);
        self.chunk.split().freeze()
    }
}

/// An encoded batch on its way into the log.
struct Pending {
    payload: Bytes,
    count: u32,
    sync: bool,
}

/// A batch in the queue, and the answer for its writer.
pub(crate) struct Waiting {
    bytes: usize,
    pending: Mutex<Option<Pending>>,
    outcome: Mutex<Option<Result<()>>>,
}

impl Core {
    /// Commits a batch: all of it or nothing, visible at once.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        self.check_writable()?;
        batch.validate()?;
        let sync = durability == Durability::Sync;
        if batch.is_empty() {
            return if sync { self.sync() } else { Ok(()) };
        }
        let pending = Pending { count: batch.len() as u32, payload: batch.into_bytes(), sync };
        match try_lock(&self.log) {
            Some(mut log) => self.commit(log.as_mut().ok_or(Error::ReadOnly)?, vec![pending]),
            None => self.write_in_group(pending),
        }
    }

    /// Another writer is at work: queue up, and be committed by whoever has the lock next.
    fn write_in_group(&self, pending: Pending) -> Result<()> {
        let bytes = pending.payload.len();
        let mine = Arc::new(Waiting { bytes, pending: Mutex::new(Some(pending)), outcome: Mutex::new(None) });
        lock(&self.waiting).push(Arc::clone(&mine));
        loop {
            let mut log = lock(&self.log);
            if let Some(outcome) = lock(&mine.outcome).take() {
                return outcome;
            }
            self.check_writable()?; // Whoever took this batch along and panicked has left no outcome.
            let group = self.take_group();
            let batches = group.iter().filter_map(|waiting| lock(&waiting.pending).take()).collect();
            let outcome = self.commit(log.as_mut().ok_or(Error::ReadOnly)?, batches);
            group.iter().for_each(|waiting| *lock(&waiting.outcome) = Some(outcome.clone()));
        }
    }

    /// The oldest waiting batches, as many as make one group.
    fn take_group(&self) -> Vec<Arc<Waiting>> {
        let mut waiting = lock(&self.waiting);
        let mut bytes = 0;
        let fits = waiting.iter().take_while(|w| {
            bytes += w.bytes;
            bytes <= GROUP_BYTES_MAX
        });
        let n = fits.count().max(1).min(waiting.len());
        waiting.drain(..n).collect()
    }

    fn commit(&self, log: &mut Log, group: Vec<Pending>) -> Result<()> {
        self.poison_on_panic(|| self.commit_group(log, group))
    }

    fn commit_group(&self, log: &mut Log, group: Vec<Pending>) -> Result<()> {
        self.check_writable()?;
        self.resume(log)?;
        let bytes: usize = group.iter().map(|pending| pending.payload.len()).sum();
        self.make_room(log, bytes)?;
        let mut seq = log.next_seq;
        let record = |pending| {
            let &Pending { ref payload, count, .. } = pending;
            let first_seq = seq;
            seq += Seq::from(count);
            wal::LogRecord { first_seq, count, payload }
        };
        let records: Vec<wal::LogRecord<'_>> = group.iter().map(record).collect();
        let before = log.writer.len();
        let appended = log.writer.append_group(&records);
        appended.map_err(|e| self.fail_log(log, e))?;
        if group.iter().any(|pending| pending.sync) {
            self.sync_log(log)?;
        }
        add(&self.metrics.log_bytes, log.writer.len() - before);
        add(&self.metrics.user_bytes, bytes as u64);
        for pending in group {
            self.apply(&log.active, log.next_seq, log.arena.keep(pending.payload));
            log.next_seq += Seq::from(pending.count);
        }
        self.visible.store(log.next_seq - 1, Ordering::Release);
        Ok(())
    }

    /// Inserts a batch's operations into a memtable.
    pub fn apply(&self, table: &Memtable, first_seq: Seq, payload: Bytes) {
        for (seq, op) in (first_seq..).zip(wal::ops(payload)) {
            let key = op.data.get(..op.key_len).unwrap_or_default();
            table.insert(self.header.hasher.hash(key), seq, op.kind, op.key_len, op.data);
        }
    }

    /// Makes everything acknowledged so far durable.
    pub fn sync(&self) -> Result<()> {
        self.check_writable()?;
        let mut log = lock(&self.log);
        self.check_writable()?;
        let log = log.as_mut().ok_or(Error::ReadOnly)?;
        self.resume(log)?;
        self.sync_log(log)
    }

    /// Oldest log first.
    pub fn sync_log(&self, log: &mut Log) -> Result<()> {
        let unsynced = std::mem::take(&mut *lock(&self.unsynced));
        for (_, mut earlier) in unsynced {
            earlier.sync().map_err(|e| self.fail_log(log, e))?;
        }
        log.writer.sync().map_err(|e| self.fail_log(log, e))?;
        lock(&self.control).synced = Some(log.mark());
        Ok(())
    }

    /// Rotates a full memtable and holds writers back: slowly when level 0 grows, wholly when compaction or flushing cannot keep up.
    fn make_room(&self, log: &mut Log, bytes: usize) -> Result<()> {
        let level0 = self.view.load().live.levels()[0].segments().len();
        // Also with room in the memtable: a process that never lives until that is full would leave one more segment each time.
        if self.level0_is_at_stop() {
            self.stall(|_| self.level0_is_at_stop().then_some(Job::Upkeep))?;
        } else if level0 >= LEVEL0_SLOWDOWN {
            self.slow_down(log, level0, bytes);
        }
        if log.active.bytes() as u64 + bytes as u64 <= self.options.memtable_bytes || log.active.is_empty() {
            return Ok(());
        }
        self.stall(|control| {
            let memtables = control.to_flush.len() + usize::from(control.flushing.is_some());
            match memtables < MEMTABLES_WAITING_MAX {
                true => self.level0_is_at_stop().then_some(Job::Upkeep),
                false => Some(Job::Flush),
            }
        })?;
        self.rotate(log)
    }

    fn level0_is_at_stop(&self) -> bool {
        self.view.load().live.levels()[0].segments().len() >= LEVEL0_STOP.max(self.options.level0_trigger)
    }

    /// Holds the writer until `wanted` names no job any more.
    fn stall(&self, wanted: impl FnMut(&mut Control) -> Option<Job>) -> Result<()> {
        let stalled = Instant::now();
        let outcome = self.wait_for_jobs(wanted);
        add(&self.metrics.stall_micros, stalled.elapsed().as_micros() as u64);
        outcome
    }

    fn slow_down(&self, log: &mut Log, level0: usize, bytes: usize) {
        let span = (LEVEL0_STOP - LEVEL0_SLOWDOWN) as u64;
        let over = (level0 - LEVEL0_SLOWDOWN).min(span as usize) as u64;
        let bytes_per_sec = SLOWDOWN_BYTES_PER_SEC / 8 * (8 * span - 7 * over) / span;
        log.sleep_debt += Duration::from_nanos(bytes as u64 * 1_000_000_000 / bytes_per_sec);
        if log.sleep_debt >= SLEEP_MIN {
            let started = Instant::now();
            std::thread::sleep(log.sleep_debt);
            add(&self.metrics.stall_micros, started.elapsed().as_micros() as u64);
            log.sleep_debt = Duration::ZERO;
        }
    }

    /// Starts a new log and memtable and hands the full one to the background.
    pub fn rotate(&self, log: &mut Log) -> Result<()> {
        let id = self.take_id();
        let fresh = Arc::new(Memtable::new(self.options.memtable_bytes)?);
        let path = self.path_of(id, FileKind::Wal);
        let writer = wal::LogWriter::create(&*self.fs, &path, id, self.header.store_id, log.next_seq)
            .inspect_err(|_| self.remove_if_there(&path)) // It is empty: a later opening needs nothing of it.
            .inspect_err(|e| self.count_shortage(e))
            .map_err(|e| self.fail(e))?;
        let earlier = std::mem::replace(&mut log.writer, writer);
        let earlier = (std::mem::replace(&mut log.id, id), earlier);
        self.retire(log, earlier);
        let full = std::mem::replace(&mut log.active, fresh);
        let mut control = lock(&self.control);
        control.to_flush.push_back((Arc::clone(&full), id));
        control.last_full = Some(Instant::now());
        self.change_view(&mut control, |view| {
            view.active = Arc::clone(&log.active);
            view.immutable.insert(0, full);
        });
        self.work.notify_all();
        Ok(())
    }
}
