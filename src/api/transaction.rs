//! [`Transaction`]: reads and writes that agree.

use super::keyspace::Keyspace;
use super::keyspace_transaction::{KeyspaceTransaction, TransactionCore};
use super::transaction_walks::{TransactionCursor, TransactionRange};
use crate::bounds::KeyBounds;
use crate::engine::Engine;
use crate::engine::transaction::Work;
use crate::error::{Error, Result};
use crate::key::{Expiry, Space, Value};
use crate::options::{Durability, Isolation};
use crate::sync::{Mutex, lock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often [`Keyspace::transact`] tries.
const TRIES_MAX: u64 = 1000;

/// The numbers of savepoints, different in all transactions of the process.
static SAVEPOINTS: AtomicU64 = AtomicU64::new(0);

/// Reads and writes that take effect together, or not at all.
///
/// It reads the store as it was when it began, and its own writes on top. Its writes are only visible to
/// itself, until [`commit`](Self::commit) applies them as one batch. If others have changed what it has read
/// since it began, the commit fails with [`Error::Conflict`] and writes nothing; [`Isolation`] says what
/// counts. Only such a change is a conflict, never a flush, a compaction, an ingest of other keys, or the age
/// of the transaction. Dropping it forgets its writes.
///
/// ```
/// # use sidebloom::{Db, Error};
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// # let db = Db::open(dir.path().join("seats.db"))?;
/// let tx = db.transaction();
/// if !tx.contains_key("seat 7")? {
///     tx.put("seat 7", "ann")?;
/// }
/// db.put("seat 7", "bob")?; // somebody else, in between
/// assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
///
/// // The same, tried again after a conflict:
/// let booked = db.transact(|tx| tx.insert_new("seat 8", "ann"))?;
/// assert!(booked.value);
/// # Ok(()) }
/// ```
///
/// No lock is held between its calls, so a long transaction stops nobody. It keeps what a
/// [`Snapshot`](crate::Snapshot) keeps, and does not keep the store open: once the last [`Db`](crate::Db) is
/// dropped, its commit fails with [`Error::Closing`].
pub struct Transaction {
    engine: Arc<Engine>,
    core: TransactionCore,
}

/// A point in a transaction to which its writes can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(u64);

/// The result of [`Keyspace::transact`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transacted<T> {
    /// What the closure returned in the attempt that was committed.
    pub value: T,
    /// How many attempts before it had a conflict.
    pub retries: u64,
}

impl Keyspace {
    /// Begins a transaction with [`Isolation::Serializable`].
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(Isolation::default())
    }

    /// Begins a transaction.
    pub fn transaction_with(&self, isolation: Isolation) -> Transaction {
        let reader = self.reader().clone();
        let work = Mutex::new(Work::new(&reader, isolation));
        Transaction { engine: self.shared_engine(), core: TransactionCore { reader, work } }
    }

    /// Runs `work` in a transaction and commits it, again and again while it has a conflict, up to 1,000
    /// times.
    ///
    /// If `work` returns an error other than [`Error::Conflict`], or panics, nothing is written. It may run
    /// more than once, so it should change nothing but the transaction.
    ///
    /// # Errors
    /// The errors of `work` and of [`Transaction::commit`]; [`Error::Conflict`] after 1,000 attempts.
    pub fn transact<T>(&self, mut work: impl FnMut(&Transaction) -> Result<T>) -> Result<Transacted<T>> {
        let mut retries = 0;
        loop {
            let tx = self.transaction();
            match work(&tx).and_then(|value| tx.commit().map(|()| value)) {
                Ok(value) => return Ok(Transacted { value, retries }),
                Err(Error::Conflict { .. }) if retries + 1 < TRIES_MAX => retries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Transaction {
    /// The keys of another keyspace in this transaction.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let db = sidebloom::Db::open(dir.path().join("service.db"))?;
    /// let seen = db.create_keyspace("seen", sidebloom::KeyspaceOptions::new())?;
    /// let tx = db.transaction();
    /// if tx.keyspace(&seen)?.insert_new("event 7", "")? {
    ///     tx.put("events", "1")?; // in the default keyspace
    /// }
    /// tx.commit()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ForeignKeyspace`], [`Error::KeyspaceDropped`].
    pub fn keyspace(&self, keyspace: &Keyspace) -> Result<KeyspaceTransaction<'_>> {
        keyspace.check_store(self.core.reader.storage().keyspaces.store)?;
        keyspace.check()?;
        Ok(KeyspaceTransaction::new(&self.core, keyspace.space, keyspace.id.clone()))
    }

    fn default_keyspace(&self) -> KeyspaceTransaction<'_> {
        KeyspaceTransaction::new(&self.core, Space::DEFAULT, None)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// The errors of [`Keyspace::get`]; [`Error::TransactionTooLarge`], which remains: what was read is not
    /// forgotten by rolling back.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.default_keyspace().get(key)
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.default_keyspace().contains_key(key)
    }

    /// The values of several keys, in the order of `keys`.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.default_keyspace().multi_get(keys)
    }

    /// The keys and values within a range of keys, in order, with the writes so far; later ones do not change
    /// it. Empty if the range's start is greater than its end. If anybody changes the part that was walked,
    /// also by adding keys, the commit fails.
    pub fn range(&self, range: impl KeyBounds) -> TransactionRange<'_> {
        self.default_keyspace().range(range)
    }

    /// The keys that start with `prefix`, and their values. Otherwise like [`range`](Self::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TransactionRange<'_> {
        self.default_keyspace().prefix(prefix)
    }

    /// A cursor over all rows, with the writes so far, at no row yet. What it passes counts as walked, as for
    /// [`range`](Self::range).
    pub fn cursor(&self) -> TransactionCursor<'_> {
        self.default_keyspace().cursor()
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// [`Error::KeyTooLarge`], [`Error::ValueTooLarge`], [`Error::TransactionTooLarge`],
    /// [`Error::ReadOnly`]. The transaction is then as before.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default_keyspace().put(key, value)
    }

    /// [`put`](Self::put) of a row that expires. A duration counts from this call. The transaction itself
    /// reads as of its start, also what has expired since.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an expiry that is not possible; the errors of [`put`](Self::put).
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, expiry: Expiry) -> Result<()> {
        self.default_keyspace().put_with(key, value, expiry)
    }

    /// Removes `key`. A missing key is not an error.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default_keyspace().delete(key)
    }

    /// Removes every key in a range, with one operation, also those that others add until the commit.
    ///
    /// # Errors
    /// [`Error::InvalidRange`]; the errors of [`put`](Self::put).
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        self.default_keyspace().delete_range(range)
    }

    /// Removes every key that starts with `prefix`, as [`delete_range`](Self::delete_range) does.
    ///
    /// # Errors
    /// [`Error::EmptyPrefix`]; the errors of [`put`](Self::put).
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.default_keyspace().delete_prefix(prefix)
    }

    /// Puts `key` if it is absent, and returns whether it was.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get) and [`put`](Self::put).
    pub fn insert_new(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.default_keyspace().insert_new(key, value)
    }

    /// A point to [roll back](Self::roll_back_to) to.
    pub fn savepoint(&self) -> Savepoint {
        let number = SAVEPOINTS.fetch_add(1, Relaxed);
        lock(&self.core.work).own.set_savepoint(number);
        Savepoint(number)
    }

    /// Forgets the writes after a savepoint, and the savepoints after it. What was read since still counts.
    /// The next read costs as much as all remaining writes once more.
    ///
    /// # Errors
    /// [`Error::UnknownSavepoint`] if it is of another transaction, or was itself rolled back.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        lock(&self.core.work).own.roll_back_to(savepoint.0)
    }

    /// Applies all writes atomically: all of them or nothing, even after a crash. Without writes, it always
    /// succeeds.
    ///
    /// # Errors
    /// [`Error::Conflict`] if others have changed what was read; [`Error::Closing`] if it has writes and the
    /// store was closed; the errors of [`Keyspace::write`] and of [`Keyspace::get`]. On error, nothing of it
    /// is visible. As for every write, it may appear when the store is reopened after a failed sync.
    pub fn commit(self) -> Result<()> {
        let durability = self.core.reader.storage().in_force.durability();
        self.commit_with(durability)
    }

    /// Like [`commit`](Self::commit), but with this durability instead of the one in the options.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit).
    pub fn commit_with(self, durability: Durability) -> Result<()> {
        let work = self.core.work.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        work.commit(&self.core.reader, &self.engine.writer, durability)
    }

    /// Forgets all writes, as dropping it does.
    pub fn roll_back(self) {}
}
