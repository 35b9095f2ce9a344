//! Reading: now, or as of a snapshot.

use super::core::Core;
use super::range::Range;
use super::view::{Probe, View};
use crate::error::Result;
use crate::key::{Seq, Value, prefix_end};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keys of one question about many whose filter lines are in flight together: about what a core can have outstanding.
pub(super) const KEYS_AHEAD: usize = 16;

/// One moment of a store. Reads like the store itself and does not change; flushes and compactions go on beside it.
#[derive(Clone)]
pub struct Snapshot {
    core: Arc<Core>,
    view: Arc<View>,
    seq: Seq,
}

impl Snapshot {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let (view, seq) = core.snapshot();
        Snapshot { core, view, seq }
    }

    /// The value of `key` at that moment.
    ///
    /// # Errors
    /// As [`Db::get`](crate::Db::get).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.core.get_in(&self.view, self.seq, self.core.probe(key.as_ref()))
    }

    /// Whether `key` had a value at that moment.
    ///
    /// # Errors
    /// As [`Db::get`](crate::Db::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Keys and values within a range of keys, in order.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        let (lower, upper) = (owned(range.start_bound()), owned(range.end_bound()));
        Range::new(Arc::clone(&self.view), self.seq, lower, upper)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> Range {
        Range::new(Arc::clone(&self.view), self.seq, Bound::Unbounded, Bound::Unbounded)
    }

    /// The keys that start with `prefix`, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        let prefix = prefix.as_ref();
        let end = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        self.range((Bound::Included(prefix.to_vec()), end))
    }
}

impl Core {
    /// Hashes the key: once per operation.
    #[inline]
    pub fn probe<'a>(&self, key: &'a [u8]) -> Probe<'a> {
        Probe { key, hash: self.header.hasher.hash(key) }
    }

    #[inline]
    pub fn get_in(&self, view: &View, seq: Seq, probe: Probe<'_>) -> Result<Option<Value>> {
        view.get(probe, seq, self.filters_on(), self.metrics.reads())
    }

    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let view = self.view.load();
        self.get_in(&view, self.visible.load(Ordering::Acquire), self.probe(key))
    }

    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let (view, seq) = self.snapshot();
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AHEAD) {
            let mut probes = [Probe { key: &[], hash: 0 }; KEYS_AHEAD];
            for (probe, key) in probes.iter_mut().zip(keys) {
                *probe = self.probe(key.as_ref());
                view.prefetch(*probe);
            }
            for probe in probes.into_iter().take(keys.len()) {
                values.push(self.get_in(&view, seq, probe)?);
            }
        }
        Ok(values)
    }
}
