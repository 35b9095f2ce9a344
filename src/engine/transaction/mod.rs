//! Transactions: reads from one moment, own writes over it, and a commit that fails only if others have
//! changed what was read.
//!
//! 1. A transaction reads from the view and the number of its start, and remembers what it has read: for
//!    each key the number of its value, or that it was absent, and the ranges that it has walked. No lock is
//!    held between its calls.
//! 2. Its writes stay with it until the commit, which is one conditional batch (`write/condition.rs`).
//! 3. If the log's holder cannot exclude that something was changed, the transaction compares its own view
//!    with the current one, without a lock, and tries again from there. Only a difference in the data is a
//!    conflict: what a flush, a compaction or an ingest of other keys does is none.
//!
//! Validation of what was read at the commit is optimistic concurrency control (Kung and Robinson, "On
//! optimistic methods for concurrency control", 1981). It gives serialisability because commits have one
//! order, that of the log, and because ranges are validated like keys, so that no phantom passes.

mod changes;
pub(crate) mod own_writes;
pub(crate) mod reads;

use self::changes::Comparison;
use self::own_writes::{OwnValue, OwnWrites};
use self::reads::TransactionReads;
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::engine::shared::Seen;
use crate::engine::write::Writer;
use crate::engine::write::condition::{ATTEMPTS_BESIDE_OTHERS, Outcome, Reads};
use crate::engine::write::log::EncodedBatch;
use crate::error::{Error, Result};
use crate::key::{AsOf, Entry, Time, Value};
use crate::options::{Durability, Isolation};
use std::sync::Arc;

/// The state of a transaction.
pub(crate) struct Work {
    /// What it reads from.
    pub view: Arc<View>,
    pub seen: Seen,
    /// When it started: rows that have expired by then are absent.
    pub time: Time,
    pub reads: TransactionReads,
    pub own: OwnWrites,
    pub isolation: Isolation,
    bytes_max: u64,
}

impl Work {
    /// A transaction that starts now.
    pub fn new(reader: &Reader, isolation: Isolation) -> Self {
        let (view, seen) = reader.exact_snapshot();
        let bytes_max = reader.storage().options.transaction_bytes;
        let own = OwnWrites::default();
        let time = reader.storage().clock.now();
        Work { view, seen, time, reads: TransactionReads::default(), own, isolation, bytes_max }
    }

    /// What it reads as of.
    pub fn as_of(&self) -> AsOf {
        AsOf { seq: self.seen.seq, time: self.time }
    }

    /// Whether what is read must be the same at the commit.
    pub fn tracks_reads(&self) -> bool {
        self.isolation == Isolation::Serializable
    }

    /// Fails if it takes more memory than a transaction may.
    pub fn check_size(&self) -> Result<()> {
        let bytes = self.reads.bytes() + self.own.bytes();
        if bytes > self.bytes_max {
            return Err(Error::TransactionTooLarge { bytes, max: self.bytes_max });
        }
        Ok(())
    }

    /// The view with what was written so far on top.
    pub fn view_with_own(&mut self, reader: &Reader) -> Arc<View> {
        match self.own.table(reader.storage()) {
            None => Arc::clone(&self.view),
            own => Arc::new(View { own, ..(*self.view).clone() }),
        }
    }

    /// The value of a key: what was written here, or else what the store had.
    pub fn get(&mut self, reader: &Reader, key: &[u8]) -> Result<Option<Value>> {
        match self.own.get(reader.storage(), self.time, key) {
            OwnValue::Put(value) => Ok(Some(value)),
            OwnValue::Deleted => Ok(None),
            OwnValue::Untouched => {
                let entry = reader.entry_in(&self.view, self.as_of(), key)?;
                self.note_read(key, entry.as_ref())?;
                Ok(entry.map(|entry| entry.value))
            }
        }
    }

    /// [`get`](Self::get) for several keys, in order.
    pub fn multi_get<K: AsRef<[u8]>>(&mut self, reader: &Reader, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let own: Vec<_> =
            keys.iter().map(|key| self.own.get(reader.storage(), self.time, key.as_ref())).collect();
        let mut entries = Vec::with_capacity(keys.len());
        reader.find_each(&self.view, self.as_of(), keys, |entry| entry, |entry| entries.push(entry))?;
        let mut values = Vec::with_capacity(keys.len());
        for ((key, own), entry) in keys.iter().zip(own).zip(entries) {
            values.push(match own {
                OwnValue::Put(value) => Some(value),
                OwnValue::Deleted => None,
                OwnValue::Untouched => {
                    self.note_read(key.as_ref(), entry.as_ref())?;
                    entry.map(|entry| entry.value)
                }
            });
        }
        Ok(values)
    }

    fn note_read(&mut self, key: &[u8], found: Option<&Entry>) -> Result<()> {
        self.check_size()?; // Or else each refused read would make it larger.
        if self.tracks_reads() {
            self.reads.add_key(key, found);
        }
        self.check_size()
    }

    /// Adds a write, unless the transaction gets too large.
    pub fn write(&mut self, reader: &Reader, add: impl FnOnce(&mut OwnWrites) -> Result<()>) -> Result<()> {
        reader.check_writable()?;
        add(&mut self.own)?;
        let checked = self.check_size();
        if checked.is_err() {
            self.own.pop()?;
        }
        checked
    }

    /// Makes its writes durable and visible, all at once.
    pub fn commit(self, reader: &Reader, writer: &Writer, durability: Durability) -> Result<()> {
        if self.own.is_empty() {
            return Ok(()); // It has read one moment: as if it had run then.
        }
        let batch = self.own.to_batch();
        batch.validate()?;
        let batch = EncodedBatch::new(batch, durability, &reader.storage().clock)?;
        let as_of = self.as_of();
        let reads = match self.isolation {
            Isolation::Serializable => self.reads,
            Isolation::Snapshot => self.own.as_reads(reader, &self.view, as_of)?,
        };
        if reads.is_empty() {
            return writer.submit(batch).map(drop);
        }
        commit_if_unchanged(reader, writer, &batch, (self.view, self.seen), self.time, &reads)
    }
}

/// Commits a batch if what was read at a moment, which `time` is of, is the same.
///
/// # Errors
/// [`Error::Conflict`] if it is not, also if it has expired; the errors of writing, and of reading.
pub(crate) fn commit_if_unchanged(
    reader: &Reader,
    writer: &Writer,
    batch: &EncodedBatch,
    mut moment: (Arc<View>, Seen),
    mut time: Time,
    reads: &TransactionReads,
) -> Result<()> {
    let (set, clock) = (Arc::new(reads.to_set()), &reader.storage().clock);
    let _kept = set.needs_recent().then(|| writer.keep_recent());
    let as_of = |seen, attempts| batch.clone().only_if(seen, Reads::These(Arc::clone(&set)), attempts);
    // Nobody has noted when the rows of ranges expire, so these are compared at least once.
    let is_compared = !set.ranges.is_empty() && clock.is_needed();
    let mut until = if is_compared { Time::START } else { reads.until() };
    for attempts in 0..ATTEMPTS_BESIDE_OTHERS {
        if writer.submit(as_of(moment.1, attempts).only_before(until))? == Outcome::Committed {
            return Ok(());
        }
        let (now, then) = (reader.exact_snapshot(), time);
        time = clock.moment();
        until = Comparison::new(reader, (&moment, then), (&now, time)).check(reads, &set)?;
        moment = now;
    }
    let alone = || {
        let now = reader.exact_snapshot();
        Comparison::new(reader, (&moment, time), (&now, clock.moment())).check(reads, &set)?;
        Ok(as_of(now.1, ATTEMPTS_BESIDE_OTHERS))
    };
    writer.submit_alone(alone).map(drop)
}
