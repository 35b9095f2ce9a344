//! [`Keyspace`], the handle to one set of keys, and its methods, which are also those of [`Db`](crate::Db).

use super::cursor::Cursor;
use super::range::Range;
use super::snapshot::Snapshot;
use crate::bounds::KeyBounds;
use crate::engine::Engine;
use crate::engine::open::close::OpenStore;
use crate::engine::read::Reader;
use crate::error::{Error, Result};
use crate::filter::Verdict;
use crate::key::{Expiry, HEADS_START, KeyspaceId, Space, StoredKeys, Value};
use crate::options::{Durability, KeyspaceOptions};
use crate::wal::{Batch, KeyspaceBatch};
use std::sync::Arc;

/// A set of keys of its own within a store. [`Db::create_keyspace`](crate::Db::create_keyspace) makes one,
/// [`Db::keyspace`](crate::Db::keyspace) opens it. [`Db`](crate::Db) itself is the default keyspace: all of
/// these methods are also methods of it.
///
/// Clones are handles to the same keyspace, for sharing between threads. A handle keeps the store open.
///
/// All keyspaces of a store share its log, memtables, caches, threads and snapshots. A [`Batch`] or a
/// [`Transaction`](crate::Transaction) changes any of them at once. Each has
/// [options](KeyspaceOptions) of its own, among them its filters. An empty one takes a row of the store, and
/// thousands of small ones share segments.
///
/// Once a keyspace is dropped, its handles return
/// [`Error::KeyspaceDropped`](crate::Error::KeyspaceDropped). Snapshots and iterators from before still read
/// it. A keyspace that is created later with its name is another one.
///
/// ```
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// use sidebloom::{Batch, Db, KeyspaceOptions};
///
/// let db = Db::open(dir.path().join("service.db"))?;
/// let users = db.create_keyspace("users", KeyspaceOptions::new())?;
/// let sessions = db.create_keyspace("sessions", KeyspaceOptions::new())?;
/// let mut batch = Batch::new(); // atomic, across both
/// batch.keyspace(&users).put("ann", "1");
/// batch.keyspace(&sessions).put("7f3a", "ann");
/// db.write(batch)?;
/// assert!(users.get("7f3a")?.is_none());
/// db.drop_keyspace("sessions")?;
/// assert_eq!(db.keyspaces()?, ["users"]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Keyspace {
    pub(super) store: Arc<OpenStore>,
    pub(super) space: Space,
    /// `None` for the default keyspace.
    pub(super) id: Option<Arc<KeyspaceId>>,
    /// Keys whose first byte is smaller are stored as they are.
    needs_heads_from: u8,
}

impl Keyspace {
    /// The default keyspace of a store.
    pub(super) fn default_of(store: Arc<OpenStore>) -> Self {
        let (space, needs_heads_from) = (Space::DEFAULT, HEADS_START.first().copied().unwrap_or(0));
        Keyspace { store, space, id: None, needs_heads_from }
    }

    /// Another keyspace of the store.
    pub(super) fn other(&self, id: Arc<KeyspaceId>) -> Self {
        let store = Arc::clone(&self.store);
        Keyspace { store, space: id.space, id: Some(id), needs_heads_from: 0 }
    }

    /// Its name; empty for the default keyspace.
    pub fn name(&self) -> &str {
        self.id.as_ref().map_or("", |id| &id.name)
    }

    /// Its options. Those of the default keyspace are all unset: it has those of the store.
    pub fn options(&self) -> KeyspaceOptions {
        KeyspaceOptions::clone(&self.engine().shared.storage.keyspaces.options(self.space))
    }

    /// Replaces its options. They apply to segments that are written from now on;
    /// [`rebuild_filters`](Self::rebuild_filters) gives the others new filters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for options out of range, and for the
    /// default keyspace, whose options are those of the store; the errors of [`put`](Self::put).
    pub fn set_options(&self, options: KeyspaceOptions) -> Result<()> {
        match &self.id {
            Some(id) => self.own()?.set_keyspace_options(id, options),
            None => {
                let what = "the default keyspace has the options of the store: see Db::set_options";
                Err(Error::InvalidArgument(what.into()))
            }
        }
    }

    /// Fails if it is of another store than this one.
    pub(super) fn check_store(&self, store: u64) -> Result<()> {
        if self.engine().shared.storage.keyspaces.store == store {
            Ok(())
        } else {
            Err(Error::ForeignKeyspace { name: self.name().to_owned() })
        }
    }

    /// Fails once it was dropped.
    #[inline]
    pub(super) fn check(&self) -> Result<()> {
        self.id.as_ref().map_or(Ok(()), |id| self.engine().shared.storage.keyspaces.check(id))
    }

    /// Whether a key is stored as it is, as most keys of the default keyspace are.
    #[inline(always)]
    fn stores_as_is(&self, key: &[u8]) -> bool {
        key.first().copied().unwrap_or(0) < self.needs_heads_from
    }

    /// Adds operations on its keys to a batch.
    #[inline]
    pub(super) fn in_batch<'b>(&self, batch: &'b mut Batch) -> KeyspaceBatch<'b> {
        match &self.id {
            Some(id) => batch.of_keyspace(id),
            None => batch.default_keyspace(),
        }
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
        let (key, value) = (key.as_ref(), value.as_ref());
        self.put_into(&mut batch, key, value, None);
        self.write(batch)
    }

    /// Adds a put to a batch, of a row that expires as `expiry` says, or else as those of the keyspace do.
    #[inline(always)]
    pub(super) fn put_into(&self, batch: &mut Batch, key: &[u8], value: &[u8], expiry: Option<Expiry>) {
        if expiry.is_none() && self.stores_as_is(key) {
            batch.push_put(&[], key, value);
        } else {
            self.in_batch(batch).put_until(key, value, expiry);
        }
    }

    /// Removes `key`. A missing key is not an error.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        self.in_batch(&mut batch).delete(key);
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
        self.in_batch(&mut batch).delete_range(range);
        self.write(batch)
    }

    /// Removes every key that starts with `prefix`, as [`delete_range`](Self::delete_range) does.
    ///
    /// # Errors
    /// [`Error::EmptyPrefix`](crate::Error::EmptyPrefix) for an empty prefix; the errors of
    /// [`put`](Self::put).
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        self.in_batch(&mut batch).delete_prefix(prefix);
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
        self.write_with(batch, self.engine().shared.storage.in_force.durability())
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
        let key = key.as_ref();
        if self.stores_as_is(key) { self.reader().get(key) } else { self.get_with_head(key) }
    }

    #[inline(never)]
    fn get_with_head(&self, key: &[u8]) -> Result<Option<Value>> {
        self.check()?;
        self.space.with_stored(key, |stored| self.reader().get(stored))
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
    /// "maybe" until a compaction drops it, and an expired one until all rows of its segment have expired.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        let key = key.as_ref();
        if self.stores_as_is(key) { self.reader().may_contain(key) } else { self.may_contain_with_head(key) }
    }

    #[inline(never)]
    fn may_contain_with_head(&self, key: &[u8]) -> Verdict {
        self.space.with_stored(key, |stored| self.reader().may_contain(stored))
    }

    /// [`may_contain`](Self::may_contain) for several keys, in the order of `keys`. Prefetches the filter
    /// lines of many keys at once.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        match StoredKeys::new(self.space, keys) {
            None => self.reader().may_contain_many(keys),
            Some(stored) => self.reader().may_contain_many(&stored.keys()),
        }
    }

    /// Whether a key may start with `prefix`, from memtables and filters alone: [`Verdict::Absent`] is
    /// certain. Never reads a block. Filters know the prefixes of
    /// [`Options::prefixes`](crate::Options::prefixes); if none fits, only the first and last keys of
    /// segments decide. The prefix of deleted keys may stay "maybe" until a compaction drops them.
    pub fn may_contain_prefix(&self, prefix: impl AsRef<[u8]>) -> Verdict {
        self.space.with_stored(prefix.as_ref(), |stored| self.reader().may_contain_prefix(stored))
    }

    /// The values of several keys, in the order of `keys`, all as of one moment. Prefetches the filter lines
    /// of many keys at once.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.check()?;
        match StoredKeys::new(self.space, keys) {
            None => self.reader().multi_get(keys),
            Some(stored) => self.reader().multi_get(&stored.keys()),
        }
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
        let prefix = prefix.as_ref();
        let is_denied = |stored: &[u8]| self.reader().denies_prefix(stored);
        if self.check().is_ok() && self.space.with_stored(prefix, is_denied) {
            Range::empty()
        } else {
            self.snapshot().prefix_range(prefix)
        }
    }

    /// A cursor over the store as it is now, at no row yet. See [`Cursor`].
    pub fn cursor(&self) -> Cursor {
        self.snapshot().cursor()
    }

    /// A snapshot of the store as it is now. It keeps its memtables in memory and its segments on disk while
    /// the store is open. Drop snapshots and iterators before the last [`Db`](crate::Db): segment files are
    /// opened on demand, so a later read fails with [`Error::Io`](crate::Error::Io) once another open of the
    /// store has removed the file.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.reader().clone(), self.space, self.check().err())
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
}
