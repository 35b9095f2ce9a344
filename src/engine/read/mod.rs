//! The read path: checks the filters for where a key may be, and reads there.
//!
//! A missing key ends at the filters of the current view. Any other read first loads the [`View`], then the
//! visible sequence number. Each key is hashed once.
//!
//! A thread keeps the filters that it used last, so that a missing key needs no atomic read-modify-write.
//! Such an instruction would also stop the CPU from starting the next lookup while it waits for this one's
//! lines.
//!
//! 1. Each store counts its views. A thread keeps the filters of the last view that it used, with its number.
//! 2. As long as the store's number is the same, these filters belong to the current view.
//! 3. A thread that stops reading keeps old filters, but neither memtables nor segments. When a memtable or
//!    segment is dropped, so are its filter's memory and file, no matter who keeps the filter. So an answer
//!    counts only if the number is still the same afterwards.
//! 4. A view with very many segments is not kept, so idle threads hold few of the maps that
//!    [`max_mapped_filters`](crate::options::Options::max_mapped_filters) allows.

pub(crate) mod lookup;
pub(crate) mod prefixes;
pub(crate) mod route;
pub(crate) mod view;

use self::lookup::Lookup;
use self::route::{FilterCounters, Filters, FirstSegment, HashedKey, KEYS_AHEAD, Route};
use self::view::View;
use crate::direction::Direction;
use crate::engine::shared::{Seen, Shared};
use crate::engine::storage::Storage;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Entry, Seq, Value, prefix_end};
use crate::segment::Access;
use crate::sync::atomic::Ordering;
use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::fence;

/// Keys of a multi-key read whose blocks are read from files at the same time.
const READS_AHEAD: usize = 64;

/// The number of stores whose filters a thread keeps. A store's number decides its slot.
const SLOTS: usize = 4;

/// The filters of a view.
struct KeptFilters {
    store: u64,
    view: u64,
    filters: Arc<Filters>,
}

thread_local!(static KEPT: RefCell<[Option<KeptFilters>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) });

/// Reads of an open store.
#[derive(Clone)]
pub(crate) struct Reader {
    shared: Arc<Shared>,
}

impl Reader {
    pub fn new(shared: Arc<Shared>) -> Self {
        Reader { shared }
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

    /// The view and the sequence number for a read that starts now.
    pub fn snapshot(&self) -> (Arc<View>, Seq) {
        self.shared.snapshot()
    }

    #[inline(always)]
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        let (key, counters) = (self.hash_key(key), self.counters());
        match self.route(key, counters) {
            (Route::Nowhere, _) => Ok(None),
            route => self.get_now(key, counters, route),
        }
    }

    /// The value of a key, given a fresh result of [`route`](Self::route).
    #[inline(never)]
    fn get_now(
        &self,
        key: HashedKey<'_>,
        counters: FilterCounters<'_>,
        route: (Route, FirstSegment),
    ) -> Result<Option<Value>> {
        let view = self.shared.view();
        let seq = self.shared.visible();
        let (route, first) = self.route_in(&view, key, counters, route);
        Lookup { view: &view, seq, key, first, counters }.get(route)
    }

    /// The value of a key in a view, as of `seq`.
    pub fn get_in(&self, view: &View, seq: Seq, key: &[u8]) -> Result<Option<Value>> {
        let (key, counters) = (self.hash_key(key), self.counters());
        let (route, first) = view.filters.route(key, counters);
        Lookup { view, seq, key, first, counters }.get(route)
    }

    /// The newest value of a key in a view as of `seq`, with its sequence number.
    pub fn entry_in(&self, view: &View, seq: Seq, key: &[u8]) -> Result<Option<Entry>> {
        let (key, counters) = (self.hash_key(key), self.counters());
        let (route, first) = view.filters.route(key, counters);
        Lookup { view, seq, key, first, counters }.find(route, |entry| entry)
    }

    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        let (view, seq) = self.shared.snapshot();
        let mut values = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READS_AHEAD) {
            self.get_each(&self.routed(&view, seq, keys), &mut values)?;
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
        seq: Seq,
        keys: &'a [K],
    ) -> Vec<(Lookup<'a>, Route)> {
        let mut lookups = Vec::with_capacity(keys.len());
        self.each_route(view, seq, keys, |lookup, route| lookups.push((lookup, route)));
        lookups
    }

    /// Passes to `take`, in order, what `part` takes of each key's newest value in a view as of `seq`.
    pub fn find_each<K: AsRef<[u8]>, T>(
        &self,
        view: &View,
        seq: Seq,
        keys: &[K],
        part: impl Fn(Entry) -> T,
        mut take: impl FnMut(Option<T>),
    ) -> Result<()> {
        for keys in keys.chunks(READS_AHEAD) {
            self.find_each_of(&self.routed(view, seq, keys), &part, &mut take)?;
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

    #[inline(always)]
    pub fn may_contain(&self, key: &[u8]) -> Verdict {
        let (key, counters) = (self.hash_key(key), self.counters());
        match self.route(key, counters) {
            (Route::Nowhere, _) => Verdict::Absent,
            (Route::Runs(_), _) => Verdict::Maybe,
            route => self.may_contain_now(key, counters, route),
        }
    }

    #[inline(never)]
    fn may_contain_now(
        &self,
        key: HashedKey<'_>,
        counters: FilterCounters<'_>,
        route: (Route, FirstSegment),
    ) -> Verdict {
        let view = self.shared.view();
        let seq = self.shared.visible();
        let (route, first) = self.route_in(&view, key, counters, route);
        Lookup { view: &view, seq, key, first, counters }.may_contain(route)
    }

    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let (view, seq) = self.shared.snapshot();
        let mut verdicts = Vec::with_capacity(keys.len());
        self.each_route(&view, seq, keys, |lookup, route| verdicts.push(lookup.may_contain(route)));
        verdicts
    }

    /// Whether the filters of the current view deny all keys that start with `prefix`.
    pub fn denies_prefix(&self, prefix: &[u8]) -> bool {
        let denials = self.shared.storage.prefixes.as_ref().and_then(|prefixes| prefixes.ask_prefix(prefix));
        denials.is_some_and(|denials| self.ask_filters(|filters| filters.deny_prefix(prefix, &denials)))
    }

    /// Whether a key may start with `prefix`, from memory alone.
    pub fn may_contain_prefix(&self, prefix: &[u8]) -> Verdict {
        if self.denies_prefix(prefix) {
            return Verdict::Absent;
        }
        let (view, seq) = self.shared.snapshot();
        let end = prefix_end(prefix);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let merge = view.merge(seq, Direction::Forward, Bound::Included(prefix), upper, Access::Keys);
        if merge.has_sources() { Verdict::Maybe } else { Verdict::Absent }
    }

    /// Calls `each` with the lookup and the route of each key, in order.
    #[inline]
    fn each_route<'a, K: AsRef<[u8]>>(
        &'a self,
        view: &'a View,
        seq: Seq,
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
                each(Lookup { view, seq, key, first: FirstSegment::UNKNOWN, counters }, route);
            }
        }
    }

    #[inline(always)]
    fn hash_key<'a>(&self, key: &'a [u8]) -> HashedKey<'a> {
        HashedKey { key, hash: self.hash(key) }
    }

    #[inline(always)]
    fn counters(&self) -> FilterCounters<'_> {
        self.shared.storage.metrics.filters.mine()
    }

    /// The route of a key by the current view's filters.
    #[inline(always)]
    fn route(&self, key: HashedKey<'_>, counters: FilterCounters<'_>) -> (Route, FirstSegment) {
        self.ask_filters(move |filters| filters.route(key, counters))
    }

    /// The result of `ask` on the current view's filters.
    #[inline(always)]
    fn ask_filters<R>(&self, ask: impl Fn(&Filters) -> R) -> R {
        loop {
            // Loaded before the view, so that a thread never takes an old view for a new one.
            let number = self.shared.current.number.load(Ordering::Acquire);
            let load = || Arc::clone(&self.shared.view().filters);
            let answer = with_kept(self.shared.current.store, number, load, &ask);
            // Filters of dropped memtables and segments deny everything. The view changes before a drop.
            fence(Ordering::Acquire);
            if self.shared.current.number.load(Ordering::Relaxed) == number {
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

/// Calls `ask` with the filters of view `view` of a store; gets them from `load` unless this thread has them.
#[inline(always)]
fn with_kept<R>(
    store: u64,
    view: u64,
    load: impl FnOnce() -> Arc<Filters>,
    ask: &impl Fn(&Filters) -> R,
) -> R {
    let known = KEPT.try_with(|kept| {
        let kept = kept.try_borrow().ok()?;
        let kept = kept.get(store as usize % SLOTS)?.as_ref()?;
        (kept.store == store && kept.view == view).then(|| ask(&kept.filters))
    });
    match known {
        Ok(Some(answer)) => answer,
        _ => {
            let filters = load();
            let answer = ask(&filters);
            if filters.may_be_kept() {
                keep(KeptFilters { store, view, filters });
            }
            answer
        }
    }
}

/// Keeps filters and replaces others in the same slot. A thread that is ending keeps none.
#[inline(never)]
fn keep(newer: KeptFilters) {
    let place = newer.store as usize % SLOTS;
    // The older filters are dropped outside the borrow: that may unmap files.
    let _older = KEPT.try_with(|kept| kept.try_borrow_mut().ok()?.get_mut(place)?.replace(newer));
}

/// Whether the thread keeps these filters of a store, because its last [`with_kept`] used them.
fn are_kept(store: u64, filters: &Arc<Filters>) -> bool {
    let are = KEPT.try_with(|kept| {
        let kept = kept.try_borrow().ok()?;
        let kept = kept.get(store as usize % SLOTS)?.as_ref()?;
        Some(kept.store == store && Arc::ptr_eq(&kept.filters, filters))
    });
    matches!(are, Ok(Some(true)))
}

/// Drops this thread's filters of a closed store.
pub(crate) fn forget_filters(store: u64) {
    let _dropped = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        kept.get_mut(store as usize % SLOTS)?.take_if(|kept| kept.store == store)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::support::fast_dir;
    use std::cell::Cell;

    #[test]
    fn i1_a_filter_whose_memtable_goes_while_it_is_asked_is_not_believed() {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        (0..1000).for_each(|i| db.put(format!("key {i}"), "").unwrap());
        let (reader, asked) = (db.reader(), Cell::new(0));
        let key = reader.hash_key(b"key 7");
        assert!(db.get("key 7").unwrap().is_some(), "this thread keeps the filter");
        let route = reader.ask_filters(|filters| {
            if asked.replace(asked.get() + 1) == 0 {
                db.flush().unwrap();
            }
            filters.route(key, reader.counters())
        });
        assert_eq!((asked.get(), matches!(route, (Route::Runs(_), _))), (2, true), "{route:?}");
    }

    #[test]
    fn filters_that_idle_threads_keep_are_empty_once_their_memtable_is_gone() {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        db.put("a", "").unwrap();
        assert!(db.get("b").unwrap().is_none()); // Now this thread keeps the filters.
        let filters = Arc::clone(&db.engine().shared.view().filters);
        let hash = db.reader().hash_key(b"a").hash;
        assert!(!filters.memtables_deny(hash));
        drop(db);
        assert!(filters.memtables_deny(hash));
    }
}
