//! The read path: one key or many, each by a [`Lookup`](super::lookup::Lookup).
//!
//! A read loads the [`View`](super::view::View) first, then the visible sequence number, and hashes each key once.

use super::inner::Inner;
use super::lookup::{HashedKey, Lookup, Route};
use super::lookup_many::{KEYS_AHEAD, routes};
use super::view::View;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Seq, Value};
use crate::sync::atomic::Ordering;

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
            for (lookup, route) in self.routes(&view, seq, keys) {
                values.push(lookup.get_on(route)?);
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
            let routes = self.routes(&view, seq, keys);
            verdicts.extend(routes.map(|(lookup, route)| lookup.may_contain_on(route)));
        }
        verdicts
    }

    #[inline(always)]
    fn lookup<'a>(&'a self, view: &'a View, seq: Seq, key: &'a [u8]) -> Lookup<'a> {
        let key = HashedKey { key, hash: self.storage.header.hasher.hash(key) };
        let (filters, counters) = (self.storage.filters_on(), self.storage.metrics.filter_counters());
        Lookup { view, seq, key, filters, counters }
    }

    /// Lookups of up to [`KEYS_AHEAD`] keys, each with its route.
    #[inline]
    fn routes<'a, K: AsRef<[u8]>>(
        &'a self,
        view: &'a View,
        seq: Seq,
        keys: &'a [K],
    ) -> impl Iterator<Item = (Lookup<'a>, Route)> {
        let none = self.lookup(view, seq, &[]);
        let mut lookups = [none; KEYS_AHEAD];
        lookups.iter_mut().zip(keys).for_each(|(lookup, key)| *lookup = self.lookup(view, seq, key.as_ref()));
        let routes = routes(lookups.get(..keys.len()).unwrap_or_default());
        lookups.into_iter().zip(routes).take(keys.len())
    }
}
