//! The read path: one key or many, each by a [`Lookup`](super::lookup::Lookup).
//!
//! A read loads the [`View`](super::view::View) first, then the visible sequence number, and hashes each key once.

use super::inner::Inner;
use super::lookup::{HashedKey, Lookup};
use super::view::View;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Seq, Value};
use crate::sync::atomic::Ordering;

/// Keys of a multi-key read whose filter lines are prefetched together: about as many cache misses as a core can have outstanding.
const KEYS_AHEAD: usize = 16;

impl Inner {
    #[inline]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let view = self.view.load();
        self.get_in(&view, self.visible.load(Ordering::Acquire), key)
    }

    /// The value of a key in a view, as of `seq`.
    #[inline]
    pub fn get_in(&self, view: &View, seq: Seq, key: &[u8]) -> Result<Option<Value>> {
        self.lookup(view, seq, key).get()
    }

    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let (view, seq) = self.snapshot();
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AHEAD) {
            for lookup in self.lookups(&view, seq, keys).into_iter().flatten() {
                values.push(lookup.get()?);
            }
        }
        Ok(values)
    }

    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> Verdict {
        let view = self.view.load();
        self.lookup(&view, self.visible.load(Ordering::Acquire), key).may_contain()
    }

    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let (view, seq) = self.snapshot();
        let mut verdicts = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_AHEAD) {
            let lookups = self.lookups(&view, seq, keys);
            verdicts.extend(lookups.iter().flatten().map(Lookup::may_contain));
        }
        verdicts
    }

    #[inline(always)]
    fn lookup<'a>(&'a self, view: &'a View, seq: Seq, key: &'a [u8]) -> Lookup<'a> {
        let key = HashedKey { key, hash: self.storage.header.hasher.hash(key) };
        let (filters, counters) = (self.storage.filters_on(), self.storage.metrics.filter_counters());
        Lookup { view, seq, key, filters, counters }
    }

    /// Lookups of up to [`KEYS_AHEAD`] keys, with their filter lines prefetched.
    #[inline]
    fn lookups<'a, K: AsRef<[u8]>>(
        &'a self,
        view: &'a View,
        seq: Seq,
        keys: &'a [K],
    ) -> [Option<Lookup<'a>>; KEYS_AHEAD] {
        std::array::from_fn(|i| {
            let lookup = self.lookup(view, seq, keys.get(i)?.as_ref());
            lookup.prefetch();
            Some(lookup)
        })
    }
}
