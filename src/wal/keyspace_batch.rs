//! What programs add to a [`Batch`], by keyspace.

use super::batch::Batch;
use crate::bounds::KeyBounds;
use crate::key::{Expiry, KeyspaceId, Space};
use crate::ranges::DeletedRange;
use std::sync::Arc;

/// Adds operations on one keyspace to a [`Batch`]. See [`Batch::keyspace`].
pub struct KeyspaceBatch<'b> {
    batch: &'b mut Batch,
    space: Space,
    /// When rows expire unless a put says so.
    expiry: Option<Expiry>,
}

impl<'b> KeyspaceBatch<'b> {
    #[inline]
    pub(super) fn new(batch: &'b mut Batch, space: Space, expiry: Option<Expiry>) -> Self {
        KeyspaceBatch { batch, space, expiry }
    }

    /// [`Batch::put`].
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.put_until(key.as_ref(), value.as_ref(), None);
    }

    /// [`Batch::put_with`].
    pub fn put_with(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, expiry: Expiry) {
        let key = key.as_ref();
        self.batch.push_put_with(self.space.head(key), key, value.as_ref(), expiry);
    }

    /// Puts a row that expires as `expiry` says, or else as those of the keyspace do.
    pub(crate) fn put_until(&mut self, key: &[u8], value: &[u8], expiry: Option<Expiry>) {
        match expiry.or(self.expiry) {
            None => self.batch.push_put(self.space.head(key), key, value),
            Some(expiry) => self.put_with(key, value, expiry),
        }
    }

    /// [`Batch::delete`].
    #[inline]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        let key = key.as_ref();
        self.batch.push_delete(self.space.head(key), key);
    }

    /// [`Batch::delete_range`].
    pub fn delete_range(&mut self, range: impl KeyBounds) {
        let (from, to) = range.into_bounds();
        match DeletedRange::new(from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)) {
            Ok(Some(range)) => self.batch.push_range(&range.stored(self.space)),
            Ok(None) => {}
            Err(error) => self.batch.refuse(error),
        }
    }

    /// [`Batch::delete_prefix`].
    pub fn delete_prefix(&mut self, prefix: impl AsRef<[u8]>) {
        match DeletedRange::of_prefix(prefix.as_ref()) {
            Ok(range) => self.batch.push_range(&range.stored(self.space)),
            Err(error) => self.batch.refuse(error),
        }
    }

    /// [`Batch::expect`].
    pub fn expect(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.batch.add_expectation(self.space, key.as_ref(), Some(value.as_ref()));
    }

    /// [`Batch::expect_absent`].
    pub fn expect_absent(&mut self, key: impl AsRef<[u8]>) {
        self.batch.add_expectation(self.space, key.as_ref(), None);
    }
}

/// The methods of a batch are those of the default keyspace.
impl Batch {
    /// The operations of the default keyspace.
    #[inline]
    pub(crate) fn default_keyspace(&mut self) -> KeyspaceBatch<'_> {
        KeyspaceBatch::new(self, Space::DEFAULT, None)
    }

    /// Operations of a keyspace, which the batch names from now on.
    pub(crate) fn of_keyspace(&mut self, id: &Arc<KeyspaceId>) -> KeyspaceBatch<'_> {
        self.keyspaces.add(id);
        KeyspaceBatch::new(self, id.space, id.expiry())
    }

    /// Sets `key` to `value`.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.default_keyspace().put(key, value);
    }

    /// Sets `key` to `value` until it expires. A duration counts from when the batch is written.
    pub fn put_with(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, expiry: Expiry) {
        self.default_keyspace().put_with(key, value, expiry);
    }

    /// Deletes `key`. The key need not exist.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) {
        self.default_keyspace().delete(key);
    }

    /// Deletes every key in a range, whether or not it exists, with one operation. A range that cannot have a
    /// key does nothing; a backward range is an error when the batch is written.
    pub fn delete_range(&mut self, range: impl KeyBounds) {
        self.default_keyspace().delete_range(range);
    }

    /// Deletes every key that starts with `prefix`, with one operation. An empty prefix is an error when the
    /// batch is written.
    pub fn delete_prefix(&mut self, prefix: impl AsRef<[u8]>) {
        self.default_keyspace().delete_prefix(prefix);
    }

    /// Makes the whole batch depend on `key` having this value when it is written. Otherwise nothing is
    /// written, and the write fails with [`Error::Conflict`](crate::Error::Conflict), which names the key.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let db = sidebloom::Db::open(dir.path().join("accounts.db"))?;
    /// # db.put("ann", "10")?;
    /// let mut transfer = sidebloom::Batch::new();
    /// transfer.expect("ann", "10");
    /// transfer.expect_absent("bob");
    /// transfer.put("ann", "7");
    /// transfer.put("bob", "3");
    /// db.write(transfer.clone())?;
    /// assert!(matches!(db.write(transfer), Err(sidebloom::Error::Conflict { .. })));
    /// # Ok(()) }
    /// ```
    pub fn expect(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.default_keyspace().expect(key, value);
    }

    /// Makes the whole batch depend on `key` having no value, as [`expect`](Self::expect) does.
    pub fn expect_absent(&mut self, key: impl AsRef<[u8]>) {
        self.default_keyspace().expect_absent(key);
    }
}
