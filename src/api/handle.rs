//! [`Db`], the handle to an open store, and its public methods.

use super::cursor::Cursor;
use super::range::Range;
use super::snapshot::Snapshot;
use super::stats::Stats;
use crate::bounds::KeyBounds;
use crate::engine::Engine;
use crate::engine::open::close::OpenStore;
use crate::engine::read::Reader;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::Value;
use crate::options::Durability;
use crate::wal::Batch;
use std::sync::Arc;

/// An open store. Clones are handles to the same store, for sharing between threads. Dropping the last one
/// closes the store; if level 0 has 20 segments or more, that waits for their merge.
///
/// One process at a time can open a store for writing. Reads never wait for writes, flushes or compactions.
///
/// # Forks
/// A forked process has a copy of the handle, but none of the store's threads, and shares its locks. There:
/// - [`get`](Self::get), [`range`](Self::range) and the other reads see the store as it was at the fork. They
///   use no cache. If the parent has removed a file since, they fail with [`Error::Io`](crate::Error::Io).
/// - Everything else returns [`Error::Forked`](crate::Error::Forked) and changes nothing.
/// - Dropping handles, snapshots and iterators waits for nothing, and unlocks or removes nothing. The child
///   can open the store once it has dropped all its handles and the parent has closed it or exited.
///
/// A child that keeps a handle keeps the lock if its parent is killed. The child of `vfork` shares the
/// parent's memory, so it must not use the store at all.
#[derive(Clone)]
pub struct Db {
    store: Arc<OpenStore>,
}

impl Db {
    pub(crate) fn new(store: OpenStore) -> Self {
        Db { store: Arc::new(store) }
    }

    /// Closes the store if this is its last handle, like a drop, and reports whether everything is durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned) if an earlier write or a background thread has failed; the
    /// errors of [`flush`](Self::flush). [`Error::Forked`](crate::Error::Forked) in a forked process, where
    /// it closes only that process's copy.
    pub fn close(self) -> Result<()> {
        let is_own = self.own().map(drop);
        Arc::into_inner(self.store).map_or(is_own, |mut store| store.close())
    }

    #[inline]
    pub(crate) fn reader(&self) -> &Reader {
        &self.store.reader
    }

    /// The engine, for what may outlive the store, and must not keep it open.
    pub(super) fn shared_engine(&self) -> Arc<Engine> {
        Arc::clone(&self.store.engine)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.store.engine
    }

    /// The store, for what only the process that opened it may do: threads that are not here hold its locks,
    /// or are waited for.
    pub(super) fn own(&self) -> Result<&Engine> {
        let engine = self.engine();
        engine.shared.storage.process.check()?;
        Ok(engine)
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// [`Error::KeyTooLarge`](crate::Error::KeyTooLarge),
    /// [`Error::ValueTooLarge`](crate::Error::ValueTooLarge), [`Error::ReadOnly`](crate::Error::ReadOnly).
    /// [`Error::Io`](crate::Error::Io) if the log cannot be written: on a full disk, writes fail until there
    /// is space; after any other failure, they fail with [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(key, value);
        self.write(batch)
    }

    /// Removes `key`. A missing key is not an error.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(key);
        self.write(batch)
    }

    /// Removes every key in a range, with one operation for any number of keys. Keys need not exist.
    ///
    /// ```no_run
    /// # fn main() -> sidebloom::Result<()> {
    /// # let db = sidebloom::Db::open("songs.db")?;
    /// db.delete_range("2019-01".."2019-07")?;
    /// # Ok(()) }
    /// ```
    ///
    /// Until the range is compacted away, each read of an existing key takes one more binary search. Segments
    /// with only deleted keys are dropped unread.
    ///
    /// # Errors
    /// [`Error::InvalidRange`](crate::Error::InvalidRange) if the lower bound is greater than the upper one;
    /// the errors of [`put`](Self::put).
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_range(range);
        self.write(batch)
    }

    /// Removes every key that starts with `prefix`, as [`delete_range`](Self::delete_range) does.
    ///
    /// # Errors
    /// [`Error::EmptyPrefix`](crate::Error::EmptyPrefix) for an empty prefix; the errors of
    /// [`put`](Self::put).
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete_prefix(prefix);
        self.write(batch)
    }

    /// Applies a batch atomically: all of it or nothing, even after a crash. Readers see it all at once.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put), and those of [`get`](Self::get) for keys of which the batch expects
    /// something; [`Error::Conflict`](crate::Error::Conflict) if one differs from that,
    /// [`Error::Contradiction`](crate::Error::Contradiction) if none could satisfy it. On error, no part of
    /// the batch is applied.
    pub fn write(&self, batch: Batch) -> Result<()> {
        self.write_with(batch, self.engine().shared.storage.options.durability)
    }

    /// Like [`write`](Self::write), but with this durability instead of the one in the options.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_with(&self, batch: Batch, durability: Durability) -> Result<()> {
        self.engine().writer.write(batch, durability)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// [`Error::Corruption`](crate::Error::Corruption) if the block that should hold the key is damaged,
    /// [`Error::Io`](crate::Error::Io) if it cannot be read.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader().get(key.as_ref())
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Whether `key` may have a value, from memtables and filters alone. [`Verdict::Absent`] is certain.
    /// Never reads a block, so its cost does not depend on the size of the store. A deleted key may stay
    /// "maybe" until a compaction drops it.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        self.reader().may_contain(key.as_ref())
    }

    /// [`may_contain`](Self::may_contain) for several keys, in the order of `keys`. Prefetches the filter
    /// lines of many keys at once.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        self.reader().may_contain_many(keys)
    }

    /// Whether a key may start with `prefix`, from memtables and filters alone: [`Verdict::Absent`] is
    /// certain. Never reads a block. Filters know the prefixes of
    /// [`Options::prefixes`](crate::Options::prefixes); if none fits, only the first and last keys of
    /// segments decide. The prefix of deleted keys may stay "maybe" until a compaction drops them.
    pub fn may_contain_prefix(&self, prefix: impl AsRef<[u8]>) -> Verdict {
        self.reader().may_contain_prefix(prefix.as_ref())
    }

    /// Loads rows with unique keys in ascending order. They bypass the log and the memtable and become
    /// segments with filters. They become visible all at once just before this returns, and are then durable.
    /// They replace what the store has under their keys, including what was written during the load. The
    /// store stays usable, even by `rows`. An empty iterator does nothing.
    ///
    /// Rows in between existing ones may go to level 0, where they are compacted later. At 36 level-0
    /// segments, writers stall until compaction catches up.
    ///
    /// # Errors
    /// The first error among the rows, [`Error::KeyOutOfOrder`](crate::Error::KeyOutOfOrder),
    /// [`Error::KeyTooLarge`](crate::Error::KeyTooLarge),
    /// [`Error::ValueTooLarge`](crate::Error::ValueTooLarge): no row is stored. The errors of
    /// [`flush`](Self::flush) if the segments cannot be written or published.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.own()?.writer.ingest(&mut rows.into_iter())
    }

    /// [`ingest`](Self::ingest) for rows in any order. For rows with the same key, the last one wins. Sorting
    /// takes as much memory as a memtable ([`Options::memtable_bytes`](crate::Options::memtable_bytes)). More
    /// rows than that go to temporary files in the store's directory, which are removed before this returns,
    /// or by the next open.
    ///
    /// # Errors
    /// The errors of [`ingest`](Self::ingest), except for keys out of order.
    /// [`Error::Corruption`](crate::Error::Corruption) if a temporary file does not read back as written.
    pub fn ingest_unsorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.own()?.writer.ingest_unsorted(&mut rows.into_iter())
    }

    /// The values of several keys, in the order of `keys`, all as of one moment. Prefetches the filter lines
    /// of many keys at once.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.reader().multi_get(keys)
    }

    /// The keys and values within a range of keys, in order. Empty if the range's start is greater than its
    /// end. See [`Range`].
    ///
    /// ```no_run
    /// # fn main() -> sidebloom::Result<()> {
    /// # let db = sidebloom::Db::open("songs.db")?;
    /// for kv in db.range("a".."m") {
    ///     let (key, value) = kv?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn range(&self, range: impl KeyBounds) -> Range {
        self.snapshot().range(range)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> Range {
        self.snapshot().iter()
    }

    /// The keys that start with `prefix`, and their values, in order. With
    /// [`Options::prefixes`](crate::Options::prefixes), it skips sources without such a key.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        if self.reader().denies_prefix(prefix.as_ref()) {
            Range::empty()
        } else {
            self.snapshot().prefix_range(prefix.as_ref())
        }
    }

    /// A cursor over the store as it is now, at no row yet. See [`Cursor`].
    pub fn cursor(&self) -> Cursor {
        self.snapshot().cursor()
    }

    /// A snapshot of the store as it is now. It keeps its memtables in memory and its segments on disk while
    /// the store is open. Drop snapshots and iterators before the last [`Db`]: segment files are opened on
    /// demand, so a later read fails with [`Error::Io`](crate::Error::Io) once another open of the store has
    /// removed the file.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.reader().clone())
    }

    /// Makes all acknowledged writes durable.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), after which writes fail with
    /// [`Error::Poisoned`](crate::Error::Poisoned) unless the disk was full.
    pub fn sync(&self) -> Result<()> {
        self.own()?.writer.sync()
    }

    /// Writes the memtables to segments and waits until that is done.
    ///
    /// # Errors
    /// The errors of [`sync`](Self::sync).
    pub fn flush(&self) -> Result<()> {
        self.own()?.writer.flush()
    }

    /// Counters since the store was opened, and the current state of its levels.
    pub fn stats(&self) -> Stats {
        Stats::of(self.engine())
    }
}
