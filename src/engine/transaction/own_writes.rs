//! What a transaction has written: in order, and as a memtable once the transaction reads.

use super::reads::TransactionReads;
use crate::engine::read::Reader;
use crate::engine::read::view::{OwnTable, View};
use crate::engine::storage::Storage;
use crate::engine::write::log::apply_one;
use crate::error::{Error, Result};
use crate::key::{AsOf, KeyspaceId, MAX_SEQ, NamedKeyspaces, Seq, Time, Value};
use crate::memtable::{Memtable, RANGE_OVERHEAD_BYTES};
use crate::ranges::DeletedRange;
use crate::wal::{Batch, BatchOp, OpKind};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// The sequence number of the first own write: above all those of the store.
const FIRST_SEQ: Seq = MAX_SEQ + 1;
/// The memtable's filter is sized for a few keys. With more, it gives more false positives.
const TABLE_BYTES: u64 = 64 << 10;
/// Memory of an operation apart from its key and value: here, in the memtable, and in the batch.
const OVERHEAD_BYTES: u64 = 256;
/// Memory of a savepoint.
const SAVEPOINT_BYTES: u64 = 16;

/// The writes of a transaction, which only it sees.
#[derive(Default)]
pub(crate) struct OwnWrites {
    ops: Vec<BatchOp>,
    bytes: u64,
    /// The first `applied` operations; the others enter it when the transaction reads. `None` before the
    /// first write.
    table: Option<Arc<Memtable>>,
    applied: usize,
    /// Those whose keys it has written.
    keyspaces: NamedKeyspaces,
    /// The numbers of the savepoints, each with the number of operations before it.
    savepoints: Vec<(u64, usize)>,
}

/// What own writes say of a key.
pub(crate) enum OwnValue {
    /// Nothing: ask the store.
    Untouched,
    Deleted,
    Put(Value),
}

impl OwnWrites {
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Approximate memory, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.savepoints.len() as u64 * SAVEPOINT_BYTES
    }

    /// Notes a keyspace whose keys are written.
    pub fn name_keyspace(&mut self, id: &Arc<KeyspaceId>) {
        self.keyspaces.add(id);
    }

    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(OpKind::Put, key, value)
    }

    pub fn put_until(&mut self, key: &[u8], time: Time, value: &[u8]) -> Result<()> {
        self.push(OpKind::PutUntil, key, &[&time.encoded(), value].concat())
    }

    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.push(OpKind::Delete, key, &[])
    }

    pub fn delete_range(&mut self, range: &DeletedRange) -> Result<()> {
        self.push(OpKind::DeleteRange, &range.start, range.end.as_deref().unwrap_or_default())
    }

    fn push(&mut self, kind: OpKind, key: &[u8], rest: &[u8]) -> Result<()> {
        if self.table.is_none() {
            self.table = Some(Arc::new(Memtable::new(TABLE_BYTES)?));
        }
        let op = BatchOp { kind, key_len: key.len(), data: Bytes::from([key, rest].concat()) };
        self.bytes += bytes_of(&op);
        self.ops.push(op);
        Ok(())
    }

    /// Remembers the writes so far under a number.
    pub fn set_savepoint(&mut self, number: u64) {
        self.savepoints.push((number, self.ops.len()));
    }

    /// Forgets the writes and the savepoints after one.
    ///
    /// # Errors
    /// [`Error::UnknownSavepoint`]; [`Error::OutOfMemory`].
    pub fn roll_back_to(&mut self, number: u64) -> Result<()> {
        let at = self.savepoints.iter().position(|(known, _)| *known == number);
        let (at, (_, len)) =
            at.and_then(|at| Some((at, *self.savepoints.get(at)?))).ok_or(Error::UnknownSavepoint)?;
        self.savepoints.truncate(at + 1);
        self.truncate(len)
    }

    /// Forgets the last write.
    pub fn pop(&mut self) -> Result<()> {
        self.truncate(self.ops.len().saturating_sub(1))
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        if self.applied > len {
            // Walks keep the table that they began with.
            (self.table, self.applied) = (Some(Arc::new(Memtable::new(TABLE_BYTES)?)), 0);
        }
        self.bytes -= self.ops.iter().skip(len).map(bytes_of).sum::<u64>();
        self.ops.truncate(len);
        Ok(())
    }

    /// The writes so far, to be read on top of a view; `None` if there are none.
    pub fn table(&mut self, storage: &Storage) -> Option<OwnTable> {
        let table = self.table.as_ref().filter(|_| !self.ops.is_empty())?;
        for (seq, op) in (FIRST_SEQ..).zip(&self.ops).skip(self.applied) {
            apply_one(table, storage, seq, op.clone(), &mut |_, _| {});
        }
        self.applied = self.ops.len();
        Some(OwnTable { table: Arc::clone(table), seq: FIRST_SEQ + self.applied as Seq - 1 })
    }

    /// What the writes so far say of a key at a moment.
    pub fn get(&mut self, storage: &Storage, time: Time, key: &[u8]) -> OwnValue {
        let Some(OwnTable { table, seq }) = self.table(storage) else { return OwnValue::Untouched };
        let entry = table.get(key, storage.header.hasher.hash(key), seq);
        let deleted = if table.has_ranges() { table.ranges().seq_at(key, seq) } else { 0 };
        match entry {
            Some(entry) if entry.seq > deleted => match entry.kind {
                kind if kind.is_alive(time) => OwnValue::Put(entry.value),
                _ => OwnValue::Deleted,
            },
            _ if deleted > 0 => OwnValue::Deleted,
            _ => OwnValue::Untouched,
        }
    }

    /// The writes, in order.
    pub fn to_batch(&self) -> Batch {
        let mut batch = Batch::new();
        batch.name_keyspaces(&self.keyspaces);
        for op in &self.ops {
            let rest = op.data.get(op.key_len..).unwrap_or_default();
            match op.kind {
                OpKind::Put => batch.put_stored(op.key(), rest),
                OpKind::PutUntil => {
                    let (time, value) = rest.split_at_checked(Time::BYTES).unwrap_or_default();
                    batch.put_stored_until(op.key(), Time::decode(time).unwrap_or_default(), value);
                }
                OpKind::Time => {}
                OpKind::Delete => batch.delete_stored(op.key()),
                OpKind::DeleteRange => {
                    let end = (!rest.is_empty()).then(|| rest.to_vec());
                    batch.push_range(&DeletedRange { start: op.key().to_vec(), end });
                }
            }
        }
        batch
    }

    /// The keys and ranges written, as if they had been read in this view.
    pub fn as_reads(&self, reader: &Reader, view: &View, as_of: AsOf) -> Result<TransactionReads> {
        let mut reads = TransactionReads::default();
        for op in &self.ops {
            if op.kind == OpKind::DeleteRange {
                let (from, to) = range_of(op.key(), op.data.get(op.key_len..).unwrap_or_default());
                reads.add_range((from.map(<[u8]>::to_vec), to.map(<[u8]>::to_vec)));
            } else {
                reads.add_key(op.key(), reader.entry_in(view, as_of, op.key())?.as_ref());
            }
        }
        Ok(reads)
    }
}

fn bytes_of(op: &BatchOp) -> u64 {
    let overhead = if op.kind == OpKind::DeleteRange { RANGE_OVERHEAD_BYTES as u64 } else { 0 };
    2 * op.data.len() as u64 + OVERHEAD_BYTES + overhead
}

/// The bounds of a deleted range, whose empty end stands for none.
fn range_of<'a>(start: &'a [u8], end: &'a [u8]) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (Bound::Included(start), if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end) })
}
