//! The read path: checks the filters for where a key may be, and reads there.
//!
//! A missing key ends at the filters of the current view. Any other read first loads the [`View`], then the
//! visible sequence number. Each key is hashed once.

pub(crate) mod counts;
pub(crate) mod filters;
pub(crate) mod kept;
pub(crate) mod lookup;
pub(crate) mod prefixes;
pub(crate) mod route;
pub(crate) mod view;

use self::counts::FilterCounters;
use self::filters::{Filters, KEYS_AHEAD};
use self::kept::{KeptFilters, are_kept, keep, put_back, take_kept};
use self::lookup::Lookup;
use self::route::{FirstSegment, HashedKey, QuickLook, Route, Routed};
use self::view::View;
use crate::direction::Direction;
use crate::engine::clock::ReadTime;
use crate::engine::latency::{Operation, is_read_timed};
use crate::engine::shared::{Seen, Shared};
use crate::engine::storage::Storage;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{AsOf, Entry, Value, prefix_end};
use crate::segment::Access;
use crate::sync::Instant;
use crate::sync::atomic::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::fence;

/// Keys of a multi-key read whose blocks are read from files at the same time.
const READS_AHEAD: usize = 64;

/// Reads of an open store.
#[derive(Clone)]
pub(crate) struct Reader {
    shared: Arc<Shared>,
    /// Whether some reads are timed.
    is_timed: bool,
}

impl Reader {
    pub fn new(shared: Arc<Shared>) -> Self {
        let is_timed = shared.storage.latencies.is_some();
        Reader { shared, is_timed }
    }

    /// Fails if the store takes no writes.
    pub fn check_writable(&self) -> Result<()> {
        self.shared.check_writable()
    }

    /// The files of the store.
    pub fn storage(&self) -> &Storage {
        &self.shared.storage
    }

    /// The view of a moment for a transaction: see [`Shared::exact_snapshot`].
    pub fn exact_snapshot(&self) -> (Arc<View>, Seen) {
        self.shared.exact_snapshot()
    }

    /// The hash of a key.
    #[inline(always)]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.shared.storage.header.hasher.hash(key)
    }

    /// The view, the sequence number and the moment for a read that starts now.
    pub fn snapshot(&self) -> (Arc<View>, AsOf) {
        self.shared.snapshot()
    }

    #[inline(never)]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        if self.is_timed { self.get_sampled(key) } else { self.get_untimed(key) }
    }

    /// [`get`](Self::get), of which some are timed. Apart from it, so that it does not take its registers.
    #[inline(never)]
    fn get_sampled(&self, key: &[u8]) -> Result<Option<Value>> {
        if is_read_timed() { self.get_timed(key) } else { self.get_untimed(key) }
    }

    /// [`get`](Self::get), and records how long that took.
    #[cold]
    fn get_timed(&self, key: &[u8]) -> Result<Option<Value>> {
        let began = Instant::now();
        let found = self.get_untimed(key)?;
        let operation = if found.is_some() { Operation::GetHit } else { Operation::GetMiss };
        self.shared.storage.note_latency(operation, began.elapsed());
        Ok(found)
    }

    #[inline(always)]
    fn get_untimed(&self, key: &[u8]) -> Result<Option<Value>> {
        let hash = self.hash(key);
        let routed = self.kept_route(key, hash);
        if routed.is_nowhere() { Ok(None) } else { self.get_now(key, hash, routed) }
    }

    /// The value of a key, given the result of [`kept_route`](Self::kept_route).
    #[inline(never)]
    fn get_now(&self, key: &[u8], hash: u64, routed: Routed) -> Result<Option<Value>> {
        self.look_up(key, hash, routed, |lookup, route| lookup.get(route)).unwrap_or(Ok(None))
    }

    /// The result of `find` on a lookup in the current view, with its route; `None` if that leads nowhere.
    /// `routed` is the result of [`kept_route`](Self::kept_route).
    #[inline(always)]
    fn look_up<R>(
        &self,
        key: &[u8],
        hash: u64,
        routed: Routed,
        find: impl FnOnce(&Lookup<'_>, Route) -> R,
    ) -> Option<R> {
        let (key, counters) = (HashedKey { key, hash }, self.counters());
        let route = match routed {
            Routed::UNKNOWN => self.ask_filters(|filters, counters| filters.route(key, counters)),
            routed => routed.parts(),
        };
        if route.0 == Route::Nowhere {
            return None;
        }
        let view = self.shared.view();
        let (seq, time) = (self.shared.visible(), ReadTime::Now(&self.shared.storage.clock));
        let (route, first) = self.route_in(&view, key, counters, route);
        Some(find(&Lookup { view: &view, seq, time, key, first, counters }, route))
    }

    /// The value of a key in a view.
    pub fn get_in(&self, view: &View, as_of: AsOf, key: &[u8]) -> Result<Option<Value>> {
        let (key, counters) = (self.hash_key(key), self.counters());
        let (route, first) = view.filters.route(key, counters);
        Lookup { view, seq: as_of.seq, time: ReadTime::At(as_of.time), key, first, counters }.get(route)
    }

    /// The newest value of a key in a view, with its sequence number.
    pub fn entry_in(&self, view: &View, as_of: AsOf, key: &[u8]) -> Result<Option<Entry>> {
        let (key, counters) = (self.hash_key(key), self.counters());
        let (route, first) = view.filters.route(key, counters);
        let lookup = Lookup { view, seq: as_of.seq, time: ReadTime::At(as_of.time), key, first, counters };
        lookup.find(route, |entry| entry)
    }

    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let (view, as_of) = self.shared.snapshot();
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READS_AHEAD) {
            self.get_each(&self.routed(&view, as_of, keys), &mut values)?;
        }
        Ok(values)
    }

    /// Appends the value of each lookup.
    fn get_each(&self, lookups: &[(Lookup<'_>, Route)], values: &mut Vec<Option<Value>>) -> Result<()> {
        self.find_each_of(lookups, &|entry| entry.value, &mut |value| values.push(value))
    }

    /// A lookup of each key, with its route.
    fn routed<'a, K: AsRef<[u8]>>(
        &'a self,
        view: &'a View,
        as_of: AsOf,
        keys: &'a [K],
    ) -> Vec<(Lookup<'a>, Route)> {
        let mut lookups = Vec::with_capacity(keys.len());
        self.each_route(view, as_of, keys, |lookup, route| lookups.push((lookup, route)));
        lookups
    }

    /// Passes to `take`, in order, what `part` takes of each key's newest value in a view.
    pub fn find_each<K: AsRef<[u8]>, T>(
        &self,
        view: &View,
        as_of: AsOf,
        keys: &[K],
        part: impl Fn(Entry) -> T,
        mut take: impl FnMut(Option<T>),
    ) -> Result<()> {
        for keys in keys.chunks(READS_AHEAD) {
            self.find_each_of(&self.routed(view, as_of, keys), &part, &mut take)?;
        }
        Ok(())
    }

    /// [`find_each`](Self::find_each) for these lookups. Once one has read from a file, all following reads
    /// are started before any is waited for.
    fn find_each_of<T>(
        &self,
        lookups: &[(Lookup<'_>, Route)],
        part: &impl Fn(Entry) -> T,
        take: &mut impl FnMut(Option<T>),
    ) -> Result<()> {
        let reads = || self.shared.storage.files.counters().mine().blocks;
        let (before, mut left) = (reads(), lookups.iter());
        while let Some((lookup, route)) = left.next() {
            take(lookup.find(*route, part)?);
            if reads() != before {
                left.as_slice().iter().for_each(|(lookup, route)| lookup.will_need(*route));
                break;
            }
        }
        for (lookup, route) in left {
            take(lookup.find(*route, part)?);
        }
        Ok(())
    }

    #[inline(never)]
    pub fn may_contain(&self, key: &[u8]) -> Verdict {
        let hash = self.hash(key);
        match self.kept_route(key, hash) {
            routed if routed.is_nowhere() => Verdict::Absent,
            routed if routed.is_in_runs() && !self.shared.storage.clock.is_needed() => Verdict::Maybe,
            routed => self.may_contain_now(key, hash, routed),
        }
    }

    #[inline(never)]
    fn may_contain_now(&self, key: &[u8], hash: u64, routed: Routed) -> Verdict {
        self.look_up(key, hash, routed, |lookup, route| lookup.may_contain(route)).unwrap_or(Verdict::Absent)
    }

    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let (view, as_of) = self.shared.snapshot();
        let mut verdicts = Vec::with_capacity(keys.len());
        self.each_route(&view, as_of, keys, |lookup, route| verdicts.push(lookup.may_contain(route)));
        verdicts
    }

    /// Whether the filters of the current view deny all keys that start with `prefix`.
    pub fn denies_prefix(&self, prefix: &[u8]) -> bool {
        let denials = self.shared.storage.prefixes.as_ref().and_then(|prefixes| prefixes.ask_prefix(prefix));
        denials.is_some_and(|denials| self.ask_filters(|filters, _| filters.deny_prefix(prefix, &denials)))
    }

    /// Whether a key may start with `prefix`, from memory alone.
    pub fn may_contain_prefix(&self, prefix: &[u8]) -> Verdict {
        if self.denies_prefix(prefix) {
            return Verdict::Absent;
        }
        let (view, as_of) = self.shared.snapshot();
        let end = prefix_end(prefix);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let merge = view.merge(as_of, Direction::Forward, Bound::Included(prefix), upper, Access::Keys);
        if merge.has_sources() { Verdict::Maybe } else { Verdict::Absent }
    }

    /// Calls `each` with the lookup and the route of each key, in order.
    #[inline]
    fn each_route<'a, K: AsRef<[u8]>>(
        &'a self,
        view: &'a View,
        as_of: AsOf,
        keys: &'a [K],
        mut each: impl FnMut(Lookup<'a>, Route),
    ) {
        let counters = self.counters();
        for keys in keys.chunks(KEYS_AHEAD) {
            let mut hashed = [HashedKey { key: &[], hash: 0 }; KEYS_AHEAD];
            hashed.iter_mut().zip(keys).for_each(|(hashed, key)| *hashed = self.hash_key(key.as_ref()));
            let hashed = hashed.get(..keys.len()).unwrap_or_default();
            let routes = view.filters.routes(hashed, counters);
            for (&key, route) in hashed.iter().zip(routes) {
                let (first, time) = (FirstSegment::UNKNOWN, ReadTime::At(as_of.time));
                each(Lookup { view, seq: as_of.seq, time, key, first, counters }, route);
            }
        }
    }

    #[inline(always)]
    fn hash_key<'a>(&self, key: &'a [u8]) -> HashedKey<'a> {
        HashedKey { key, hash: self.hash(key) }
    }

    #[inline(always)]
    fn counters(&self) -> FilterCounters<'_> {
        self.shared.storage.metrics.filters.mine().into()
    }

    /// The route of a key by the current view's filters; unknown unless this thread keeps those.
    #[inline(always)]
    fn kept_route(&self, key: &[u8], hash: u64) -> Routed {
        self.kept_route_after(key, hash, || ())
    }

    /// [`kept_route`](Self::kept_route). Calls `meanwhile` just before the filters are asked.
    #[inline(always)]
    fn kept_route_after(&self, key: &[u8], hash: u64, meanwhile: impl FnOnce()) -> Routed {
        let current = &self.shared.current;
        let number = current.number.load(Ordering::Acquire);
        let Some(kept) = take_kept(current.store, number) else { return Routed::UNKNOWN };
        meanwhile();
        let look = kept.filters.quick_look(key, hash, kept.counters());
        if look != QuickLook::NOWHERE {
            return self.route_after(look, key, hash, kept, number);
        }
        put_back(kept);
        if self.is_still(number) { Routed::NOWHERE } else { Routed::UNKNOWN }
    }

    /// [`kept_route`](Self::kept_route) after a quick look that did not find the key to be missing.
    #[inline(never)]
    fn route_after(
        &self,
        look: QuickLook,
        key: &[u8],
        hash: u64,
        kept: Box<KeptFilters>,
        number: u64,
    ) -> Routed {
        let routed = kept.filters.routed_after(look, key, hash, kept.counters());
        put_back(kept);
        if self.is_still(number) { routed } else { Routed::UNKNOWN }
    }

    /// Whether the current view's number is still the same, after its filters have answered. Filters of
    /// dropped memtables and segments deny everything, and the view changes before a drop.
    #[inline(always)]
    fn is_still(&self, number: u64) -> bool {
        fence(Ordering::Acquire);
        self.shared.current.number.load(Ordering::Relaxed) == number
    }

    /// The result of `ask` on the current view's filters, which this thread then keeps.
    fn ask_filters<R>(&self, ask: impl Fn(&Filters, FilterCounters<'_>) -> R) -> R {
        loop {
            // Loaded before the view, so that a thread never takes an old view for a new one.
            let number = self.shared.view_number();
            let answer = match take_kept(self.shared.current.store, number) {
                Some(kept) => {
                    let answer = ask(&kept.filters, kept.counters());
                    put_back(kept);
                    answer
                }
                None => {
                    let filters = Arc::clone(&self.shared.view().filters);
                    let answer = ask(&filters, self.counters());
                    if filters.may_be_kept() {
                        keep(
                            self.shared.current.store,
                            number,
                            filters,
                            &self.shared.storage.metrics.filters,
                        );
                    }
                    answer
                }
            };
            if self.is_still(number) {
                return answer;
            }
        }
    }

    /// The route of a key in a view, given a fresh result of [`route`](Self::route), perhaps from an older
    /// view's filters.
    fn route_in(
        &self,
        view: &View,
        key: HashedKey<'_>,
        counters: FilterCounters<'_>,
        route: (Route, FirstSegment),
    ) -> (Route, FirstSegment) {
        if are_kept(self.shared.current.store, &view.filters) {
            route
        } else {
            view.filters.route(key, counters)
        }
    }
}

#[cfg(test)]
mod tests;
