//! The log of a store, before and after its first write, and the queue of batches in front of it.

use super::condition::{Condition, Outcome, Reads};
use super::recent::Recent;
use crate::engine::clock::Clock;
use crate::engine::shared::Seen;
use crate::engine::storage::Storage;
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::{NamedKeyspaces, Seq, Time};
use crate::live::LiveSegment;
use crate::manifest::LogMark;
use crate::memtable::{MemKind, Memtable};
use crate::options::Durability;
use crate::sync::Mutex;
use crate::wal::{self, Batch, BatchOp, OpKind};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::time::Duration;

/// What a store writes to.
pub(crate) enum Log {
    /// The store is read-only.
    None,
    /// Nothing was written since the store was opened, and everything in these logs is durable.
    Inherited(InheritedLogs),
    Active(ActiveLog),
    /// The store is closed. A transaction may outlive it.
    Closed,
}

/// The logs of earlier opens, whose operations are in memory again. Their files are never written.
pub(crate) struct InheritedLogs {
    /// Segments written from full memtables while the logs were replayed, not yet published.
    pub built: Vec<LiveSegment>,
    /// The remaining operations.
    pub memtable: Arc<Memtable>,
    /// The batches of `memtable`, each with its first sequence number and its number of operations. Empty if
    /// they are too large to be copied into a new log.
    pub batches: Vec<(Seq, Bytes, u32)>,
    pub next_seq: Seq,
    /// Files that nothing needs once a new log has replaced these.
    pub obsolete: Vec<String>,
    /// The log that replaces them, if an attempt to publish it has failed.
    pub replacement: Option<(FileId, wal::LogWriter)>,
}

impl InheritedLogs {
    /// The sequence number of the first operation that the new log holds.
    pub fn first_seq(&self) -> Seq {
        self.batches.first().map_or(self.next_seq, |(seq, _, _)| *seq)
    }
}

/// The current log with its memtable. The writer at the head of the queue holds it.
pub(crate) struct ActiveLog {
    pub writer: wal::LogWriter,
    pub id: FileId,
    pub memtable: Arc<Memtable>,
    pub next_seq: Seq,
    pub arena: Arena,
    pub recent: Recent,
    /// Delay that writers owe and have not slept yet.
    pub sleep_debt: Duration,
    pub health: LogHealth,
}

impl ActiveLog {
    /// A log without failures that continues at `next_seq`.
    pub fn new(writer: wal::LogWriter, id: FileId, memtable: Arc<Memtable>, next_seq: Seq) -> Self {
        let (arena, recent, health) = (Arena::default(), Recent::default(), LogHealth::default());
        ActiveLog { writer, id, memtable, next_seq, arena, recent, sleep_debt: Duration::ZERO, health }
    }

    /// What is durable once this log and all earlier ones are synced.
    pub fn mark(&self) -> LogMark {
        LogMark { log: self.id, bytes: self.writer.len(), next_seq: self.writer.next_seq() }
    }
}

/// Whether a log accepts writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogHealth {
    #[default]
    Sound,
    /// A write or sync of its file failed. The file is never written again.
    Failed,
    /// It replaces a failed log and takes no writes until everything older is in segments.
    AwaitingFlush,
}

/// Storage for memtable entries: chunks that many batches share. With one allocation per batch, each would be
/// freed by a thread other than the one that allocated it, at the cost of the allocator's lock.
#[derive(Default)]
pub(crate) struct Arena {
    chunk: BytesMut,
}

impl Arena {
    const CHUNK_BYTES: usize = 64 << 10;

    /// Copies a batch into the current chunk. A large batch keeps its own allocation.
    pub fn store(&mut self, payload: Bytes) -> Bytes {
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

/// A batch in the format of the log.
#[derive(Clone)]
pub(crate) struct EncodedBatch {
    pub payload: Bytes,
    /// The number of operations.
    pub count: u32,
    pub deletes_ranges: bool,
    /// Whether the writer asked for a sync.
    pub sync: bool,
    /// If there is one, what must hold for the batch to be committed.
    pub condition: Option<Condition>,
    /// Whether it stores keys with a head, as those of all keyspaces but the default one are.
    pub has_heads: bool,
    /// The keyspaces that it names.
    pub keyspaces: NamedKeyspaces,
    /// Set when the group is committed.
    pub outcome: Outcome,
}

impl EncodedBatch {
    /// A batch without a condition. It has passed [`Batch::validate`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a row that would expire too late.
    #[inline(always)]
    pub fn new(mut batch: Batch, durability: Durability, clock: &Clock) -> Result<Self> {
        if batch.expires() || clock.is_unsaid() {
            clock.date(&mut batch)?;
        }
        Ok(EncodedBatch {
            has_heads: batch.has_heads(),
            keyspaces: batch.take_keyspaces(),
            count: batch.len() as u32,
            deletes_ranges: batch.deletes_ranges(),
            payload: batch.into_bytes(),
            sync: matches!(durability, Durability::Sync),
            condition: None,
            outcome: Outcome::Committed,
        })
    }

    /// The batch, to be committed only on this condition.
    #[inline(always)]
    pub fn only_if(mut self, seen: Seen, reads: Reads, attempts: u32) -> Self {
        self.condition = Some(Condition { seen, reads, attempts, until: Time::NEVER });
        self
    }

    /// The batch, to be committed only before a row expires on whose value it depends.
    pub fn only_before(mut self, expiry: Time) -> Self {
        if let Some(condition) = &mut self.condition {
            condition.until = expiry;
        }
        self
    }

    /// Leaves nothing to commit if a row on whose value it depends has expired.
    #[inline]
    pub fn refuse_expired(&mut self, now: impl FnOnce() -> Time) {
        let until = self.condition.as_ref().map_or(Time::NEVER, |condition| condition.until);
        if until != Time::NEVER && until <= now() {
            self.clear_stale();
        }
    }

    /// Leaves nothing to commit, because the condition may no longer hold.
    pub fn clear_stale(&mut self) {
        self.clear(Outcome::Stale);
    }

    fn clear(&mut self, outcome: Outcome) {
        (self.payload, self.count, self.sync, self.outcome) = (Bytes::new(), 0, false, outcome);
    }

    /// Leaves nothing to commit if it names a keyspace that was dropped. The caller holds the log, so the
    /// batch that drops one is either in the log already, or comes later.
    pub fn refuse_dropped(&mut self) {
        if self.keyspaces.ids().iter().any(|id| id.is_dropped()) {
            self.clear(Outcome::Dropped);
        }
    }

    /// Once the group is committed: the outcome.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`].
    #[inline]
    pub fn outcome(&self) -> Result<Outcome> {
        if self.outcome != Outcome::Dropped {
            return Ok(self.outcome);
        }
        let dropped = self.keyspaces.ids().iter().find(|id| id.is_dropped());
        Err(Error::KeyspaceDropped { name: dropped.map(|id| id.name.clone()).unwrap_or_default() })
    }
}

/// A batch in the queue, and the slot for its writer's result.
pub(crate) struct QueuedBatch {
    pub bytes: usize,
    /// Taken by the thread that commits the group.
    pub batch: Mutex<Option<EncodedBatch>>,
    /// Set once the group is in the log or has failed. With the last sequence number of the group, which
    /// tells when the batch is visible.
    pub result: Mutex<Option<Result<(Outcome, Seq)>>>,
}

impl QueuedBatch {
    pub fn new(batch: EncodedBatch) -> Self {
        QueuedBatch { bytes: batch.payload.len(), batch: Mutex::new(Some(batch)), result: Mutex::new(None) }
    }
}

/// Inserts the operations of a batch into a memtable, numbered from `first_seq`. Calls `on_range` with the
/// start and end of each deleted range.
pub(crate) fn apply(
    table: &Memtable,
    storage: &Storage,
    first_seq: Seq,
    payload: Bytes,
    mut on_range: impl FnMut(&[u8], Option<&[u8]>),
) {
    for (seq, op) in (first_seq..).zip(wal::ops(payload)) {
        apply_one(table, storage, seq, op, &mut on_range);
    }
}

/// Inserts an operation into a memtable. Calls `on_range` with the start and end of a deleted range.
#[inline]
pub(crate) fn apply_one(
    table: &Memtable,
    storage: &Storage,
    seq: Seq,
    op: BatchOp,
    on_range: &mut impl FnMut(&[u8], Option<&[u8]>),
) {
    let kind = match op.kind {
        OpKind::Put => MemKind::Put,
        OpKind::Delete => MemKind::Tombstone,
        OpKind::PutUntil => {
            storage.clock.note_expiring();
            MemKind::PutUntil
        }
        OpKind::Time => {
            storage.clock.note_said(Time::decode(&op.data).unwrap_or_default());
            return table.skip(seq);
        }
        OpKind::DeleteRange => {
            let mut start = op.data;
            let end = start.split_off(op.key_len);
            let end = (!end.is_empty()).then_some(end);
            on_range(&start, end.as_deref());
            return table.delete_range(seq, start, end);
        }
    };
    if let Some(prefixes) = storage.prefixes.as_ref().filter(|prefixes| !prefixes.set.is_empty()) {
        prefixes.of_key(op.key(), |hash| table.insert_prefix(hash));
    }
    table.insert(storage.header.hasher.hash(op.key()), seq, kind, op.key_len, op.data);
}
