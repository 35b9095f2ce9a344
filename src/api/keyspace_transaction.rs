//! The keys of one keyspace in a transaction.

use super::transaction_walks::{TransactionCursor, TransactionRange};
use crate::bounds::{KeyBounds, KeyRange};
use crate::engine::read::Reader;
use crate::engine::transaction::Work;
use crate::engine::transaction::own_writes::OwnWrites;
use crate::error::Result;
use crate::key::{Expiry, KeyspaceId, Space, StoredKeys, Value, prefix_end};
use crate::ranges::DeletedRange;
use crate::sync::{Mutex, lock};
use crate::wal::check_lengths;
use std::ops::Bound;
use std::sync::Arc;

/// The part of a transaction that reads and writes.
pub(super) struct TransactionCore {
    pub reader: Reader,
    pub work: Mutex<Work>,
}

/// What a [`Transaction`](crate::Transaction) reads and writes in one keyspace. See
/// [`Transaction::keyspace`](crate::Transaction::keyspace).
pub struct KeyspaceTransaction<'t> {
    tx: &'t TransactionCore,
    space: Space,
    /// `None` for the default keyspace.
    id: Option<Arc<KeyspaceId>>,
}

impl<'t> KeyspaceTransaction<'t> {
    pub(super) fn new(tx: &'t TransactionCore, space: Space, id: Option<Arc<KeyspaceId>>) -> Self {
        KeyspaceTransaction { tx, space, id }
    }

    /// [`Transaction::get`](crate::Transaction::get).
    ///
    /// # Errors
    /// Its errors.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.space.with_stored(key.as_ref(), |stored| lock(&self.tx.work).get(&self.tx.reader, stored))
    }

    /// [`Transaction::contains_key`](crate::Transaction::contains_key).
    ///
    /// # Errors
    /// Its errors.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// [`Transaction::multi_get`](crate::Transaction::multi_get).
    ///
    /// # Errors
    /// Its errors.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        match StoredKeys::new(self.space, keys) {
            None => lock(&self.tx.work).multi_get(&self.tx.reader, keys),
            Some(stored) => lock(&self.tx.work).multi_get(&self.tx.reader, &stored.keys()),
        }
    }

    /// [`Transaction::range`](crate::Transaction::range).
    pub fn range(&self, range: impl KeyBounds) -> TransactionRange<'t> {
        self.range_of(range.into_bounds())
    }

    /// [`Transaction::prefix`](crate::Transaction::prefix).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> TransactionRange<'t> {
        let prefix = prefix.as_ref();
        let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        self.range_of((Bound::Included(prefix.to_vec()), end))
    }

    /// [`Transaction::cursor`](crate::Transaction::cursor).
    pub fn cursor(&self) -> TransactionCursor<'t> {
        TransactionCursor::new(&self.tx.reader, &self.tx.work, self.space)
    }

    /// [`Transaction::put`](crate::Transaction::put).
    ///
    /// # Errors
    /// Its errors.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_lengths(key.len(), value.len())?;
        self.space.with_stored(key, |stored| self.write(|own| self.put_own(own, stored, value, None)))
    }

    /// [`Transaction::put_with`](crate::Transaction::put_with).
    ///
    /// # Errors
    /// Its errors.
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, expiry: Expiry) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_lengths(key.len(), value.len())?;
        let put = |stored: &[u8]| self.write(|own| self.put_own(own, stored, value, Some(expiry)));
        self.space.with_stored(key, put)
    }

    /// Adds a put that expires as `expiry` says, or else as those of the keyspace do.
    fn put_own(
        &self,
        own: &mut OwnWrites,
        stored: &[u8],
        value: &[u8],
        expiry: Option<Expiry>,
    ) -> Result<()> {
        match expiry.or(self.id.as_ref().and_then(|id| id.expiry())) {
            None => own.put(stored, value),
            Some(expiry) => match self.tx.reader.storage().clock.kind_of(expiry)?.expiry() {
                None => own.put(stored, value),
                Some(time) => own.put_until(stored, time, value),
            },
        }
    }

    /// [`Transaction::delete`](crate::Transaction::delete).
    ///
    /// # Errors
    /// Its errors.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_lengths(key.len(), 0)?;
        self.space.with_stored(key, |stored| self.write(|own| own.delete(stored)))
    }

    /// [`Transaction::delete_range`](crate::Transaction::delete_range).
    ///
    /// # Errors
    /// Its errors.
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let (from, to) = range.into_bounds();
        let deleted = DeletedRange::new(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice))?;
        match deleted {
            Some(range) => self.write(|own| own.delete_range(&range.stored(self.space))),
            None => self.tx.reader.check_writable(),
        }
    }

    /// [`Transaction::delete_prefix`](crate::Transaction::delete_prefix).
    ///
    /// # Errors
    /// Its errors.
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let range = DeletedRange::of_prefix(prefix.as_ref())?;
        self.write(|own| own.delete_range(&range.stored(self.space)))
    }

    /// [`Transaction::insert_new`](crate::Transaction::insert_new).
    ///
    /// # Errors
    /// Its errors.
    pub fn insert_new(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.tx.reader.check_writable()?;
        check_lengths(key.len(), value.len())?;
        self.space.with_stored(key, |stored| {
            let mut work = lock(&self.tx.work);
            let is_new = work.get(&self.tx.reader, stored)?.is_none();
            if is_new {
                self.write_into(&mut work, |own| self.put_own(own, stored, value, None))?;
            }
            Ok(is_new)
        })
    }

    fn range_of(&self, range: KeyRange) -> TransactionRange<'t> {
        TransactionRange::new(&self.tx.reader, &self.tx.work, self.space, range)
    }

    fn write(&self, add: impl FnOnce(&mut OwnWrites) -> Result<()>) -> Result<()> {
        self.write_into(&mut lock(&self.tx.work), add)
    }

    fn write_into(&self, work: &mut Work, add: impl FnOnce(&mut OwnWrites) -> Result<()>) -> Result<()> {
        if let Some(id) = &self.id {
            self.tx.reader.storage().keyspaces.check(id)?;
            work.own.name_keyspace(id);
        }
        work.write(&self.tx.reader, add)
    }
}
