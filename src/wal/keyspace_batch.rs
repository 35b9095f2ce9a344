//! The operations of a [`Batch`] on one keyspace.

use super::batch::Batch;
use crate::bounds::KeyBounds;
use crate::key::Space;
use crate::ranges::DeletedRange;

/// Adds operations on one keyspace to a [`Batch`]. See [`Batch::keyspace`].
pub struct KeyspaceBatch<'b> {
    batch: &'b mut Batch,
    space: Space,
}

impl<'b> KeyspaceBatch<'b> {
    #[inline]
    pub(super) fn new(batch: &'b mut Batch, space: Space) -> Self {
        KeyspaceBatch { batch, space }
    }

    /// [`Batch::put`].
    #[inline]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let key = key.as_ref();
        self.batch.push_put(self.space.head(key), key, value.as_ref());
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
