//! The interface of the compared stores.

use super::change::Change;
use super::kind::StoreKind;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// An open store. What its kind does not have is an error.
pub trait WriteStore: Send + Sync {
    /// Which store.
    fn kind(&self) -> StoreKind;

    /// Writes one key. The operating system has it when this returns.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Writes many keys, at once if the store has batches.
    fn put_all(&self, rows: &[Row]) -> Result<()>;

    /// Copies the value of a key to `value`. Returns false, with `value` empty, when the key is missing.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Writes a key if it is absent. Returns whether it was.
    fn insert_new(&self, key: &[u8], value: &[u8]) -> Result<bool>;

    /// Writes those keys that are absent, all at once. Returns for each whether it was.
    fn insert_new_many(&self, _rows: &[Row]) -> Result<Vec<bool>> {
        Err(self.kind().lacks("batches"))
    }

    /// Tries a transaction once.
    fn transact(&self, _change: &mut Change<'_>) -> Result<Outcome> {
        Err(self.kind().lacks("transactions"))
    }

    /// Begins a transaction during which others may write.
    fn begin(&self) -> Result<Box<dyn OpenTransaction + '_>> {
        Err(self.kind().lacks("optimistic transactions"))
    }

    /// Writes the memtable to a table, if the store has one.
    fn flush(&self) -> Result<()>;

    /// Flushes, and waits until nothing is left to compact.
    fn finish(&self) -> Result<()>;

    /// Reads filters and indexes into memory, unless opening the store has done so.
    fn warm(&self) -> Result<()> {
        Ok(())
    }

    /// What reading cost since the store was opened; `None` if it does not count this.
    fn read_counts(&self) -> Option<ReadCounts> {
        None
    }

    /// Bytes of tables written by flushes since the store was opened; `None` if it does not count them.
    fn flushed_bytes(&self) -> Option<u64> {
        None
    }
}

/// A transaction during which others may write. Its commit fails if they have changed what it has read.
pub trait OpenTransaction {
    /// Copies the value of a key to `value`. Returns false, with `value` empty, when the key is missing.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Writes a key.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Makes what was written visible, all at once.
    fn commit(self: Box<Self>) -> Result<Outcome>;
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Its writes are visible.
    Committed,
    /// sidebloom's `Error::Conflict` or fjall's `Conflict`.
    Conflict,
    /// RocksDB's `Busy`: a key that it has read was changed.
    Busy,
    /// RocksDB's `TryAgain`: its memtables do not go back far enough to tell.
    TryAgain,
}

impl Outcome {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Committed => "committed",
            Outcome::Conflict => "Conflict",
            Outcome::Busy => "Busy",
            Outcome::TryAgain => "TryAgain",
        }
    }
}

/// Attempts of transactions that were not committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aborts {
    /// sidebloom's `Error::Conflict` or fjall's `Conflict`.
    pub conflict: u64,
    /// RocksDB's `Busy`.
    pub busy: u64,
    /// RocksDB's `TryAgain`.
    pub try_again: u64,
}

impl Aborts {
    /// Counts an attempt.
    pub fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Committed => {}
            Outcome::Conflict => self.conflict += 1,
            Outcome::Busy => self.busy += 1,
            Outcome::TryAgain => self.try_again += 1,
        }
    }

    /// Adds other attempts.
    pub fn add(&mut self, other: Aborts) {
        self.conflict += other.conflict;
        self.busy += other.busy;
        self.try_again += other.try_again;
    }

    /// All of them.
    pub fn all(self) -> u64 {
        self.conflict + self.busy + self.try_again
    }
}

/// What reading cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadCounts {
    /// Blocks read from files.
    pub block_reads: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Probes of filters answered "maybe" although the table did not have the key.
    pub false_positives: u64,
}

impl ReadCounts {
    /// What reading has cost since `before`.
    pub fn since(self, before: ReadCounts) -> ReadCounts {
        ReadCounts {
            block_reads: self.block_reads - before.block_reads,
            cache_hits: self.cache_hits - before.cache_hits,
            false_positives: self.false_positives - before.false_positives,
        }
    }
}
