//! Snapshots: reads as of one moment.

use super::cursor::Cursor;
use super::range::Range;
use crate::bounds::{KeyBounds, KeyRange};
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::error::{Error, Result};
use crate::key::{AsOf, Heads, Space, Value, prefix_end};
use std::ops::Bound;
use std::sync::Arc;

/// The store as of one moment. Later writes do not change what it reads; flushes and compactions continue.
///
/// It reads the keyspace that it was made from; [`keyspace`](Self::keyspace) reads others as of the same
/// moment.
#[derive(Clone)]
pub struct Snapshot {
    reader: Reader,
    view: Arc<View>,
    as_of: AsOf,
    space: Space,
    /// Whether any stored key has a head.
    have_heads: bool,
    /// Why nothing can be read.
    failure: Option<Error>,
}

impl Snapshot {
    /// A snapshot of this moment. With `failure`, every read of it fails.
    pub(super) fn new(reader: Reader, space: Space, failure: Option<Error>) -> Self {
        let (view, as_of) = reader.snapshot();
        let have_heads = reader.storage().keyspaces.have_heads();
        Snapshot { reader, view, as_of, space, have_heads, failure }
    }

    /// The number of the open store.
    pub(super) fn store(&self) -> u64 {
        self.reader.storage().keyspaces.store
    }

    /// The same moment of another keyspace.
    pub(super) fn of_space(&self, space: Space) -> Snapshot {
        Snapshot { space, failure: None, ..self.clone() }
    }

    /// The value of `key` at the moment of the snapshot.
    ///
    /// # Errors
    /// The errors of [`Keyspace::get`](crate::Keyspace::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        match &self.failure {
            Some(error) => Err(error.clone()),
            None => {
                let get = |stored: &[u8]| self.reader.get_in(&self.view, self.as_of, stored);
                self.space.with_stored(key.as_ref(), get)
            }
        }
    }

    /// Whether `key` had a value at the moment of the snapshot.
    ///
    /// # Errors
    /// The errors of [`Keyspace::get`](crate::Keyspace::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The keys and values within a range of keys, in order. Empty if the range's start is after its end.
    pub fn range(&self, range: impl KeyBounds) -> Range {
        self.range_of(range.into_bounds())
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> Range {
        self.range_of((Bound::Unbounded, Bound::Unbounded))
    }

    /// The keys that start with `prefix`, and their values, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let prefix = prefix.as_ref();
        let is_denied = |stored: &[u8]| {
            let denials = self.view.prefixes.as_ref().and_then(|prefixes| prefixes.ask_prefix(stored));
            denials.is_some_and(|denials| self.view.filters.deny_prefix(stored, &denials))
        };
        if self.failure.is_none() && self.space.with_stored(prefix, is_denied) {
            return Range::empty();
        }
        self.prefix_range(prefix)
    }

    /// [`prefix`](Self::prefix) without filters.
    pub(super) fn prefix_range(&self, prefix: &[u8]) -> Range {
        let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        self.range_of((Bound::Included(prefix.to_vec()), end))
    }

    fn range_of(&self, range: KeyRange) -> Range {
        let heads = self.space.heads(self.have_heads);
        match &self.failure {
            Some(error) => Range::failed(error.clone()),
            None if heads == Heads::None => Range::new(Arc::clone(&self.view), self.as_of, range, heads),
            None => {
                let range = self.space.stored_range(range);
                Range::new(Arc::clone(&self.view), self.as_of, range, heads)
            }
        }
    }

    /// A cursor over all rows, at none yet. See [`Cursor`].
    pub fn cursor(&self) -> Cursor {
        let heads = self.space.heads(self.have_heads);
        Cursor::new(&self.view, self.as_of, self.space, heads, self.failure.clone())
    }
}
