//! Snapshots: reads as of one moment.

use super::cursor::Cursor;
use super::range::Range;
use crate::bounds::KeyBounds;
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::error::Result;
use crate::key::{Seq, Value, prefix_end};
use std::ops::Bound;
use std::sync::Arc;

/// The store as of one moment. Later writes do not change what it reads; flushes and compactions continue.
#[derive(Clone)]
pub struct Snapshot {
    reader: Reader,
    view: Arc<View>,
    seq: Seq,
}

impl Snapshot {
    pub(crate) fn new(reader: Reader) -> Self {
        let (view, seq) = reader.snapshot();
        Snapshot { reader, view, seq }
    }

    /// The value of `key` at the moment of the snapshot.
    ///
    /// # Errors
    /// The errors of [`Db::get`](crate::Db::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.reader.get_in(&self.view, self.seq, key.as_ref())
    }

    /// Whether `key` had a value at the moment of the snapshot.
    ///
    /// # Errors
    /// The errors of [`Db::get`](crate::Db::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// The keys and values within a range of keys, in order. Empty if the range's start is after its end.
    pub fn range(&self, range: impl KeyBounds) -> Range {
        let (lower, upper) = range.into_bounds();
        Range::new(Arc::clone(&self.view), self.seq, lower, upper)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> Range {
        Range::new(Arc::clone(&self.view), self.seq, Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys that start with `prefix`, and their values, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let prefix = prefix.as_ref();
        let denials = self.view.prefixes.as_ref().and_then(|prefixes| prefixes.ask_prefix(prefix));
        if denials.is_some_and(|denials| self.view.filters.deny_prefix(prefix, &denials)) {
            return Range::empty();
        }
        self.prefix_range(prefix)
    }

    /// [`prefix`](Self::prefix) without filters.
    pub(crate) fn prefix_range(&self, prefix: &[u8]) -> Range {
        let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Range::new(Arc::clone(&self.view), self.seq, Bound::Included(prefix.to_vec()), end)
    }

    /// A cursor over all rows, at none yet. See [`Cursor`].
    pub fn cursor(&self) -> Cursor {
        Cursor::new(&self.view, self.seq)
    }
}
