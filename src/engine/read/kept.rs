//! The filters that each thread keeps, so that a missing key needs no atomic read-modify-write. Such an
//! instruction would also stop the CPU from starting the next lookup while it waits for this one's lines.
//!
//! 1. Each store counts its views. A thread keeps the filters of the last view that it used, with its number,
//!    and its own counters of the filters' answers.
//! 2. As long as the store's number is the same, these filters belong to the current view.
//! 3. A thread that stops reading keeps old filters, but neither memtables nor segments. When a memtable or
//!    segment is dropped, so are its filter's memory and file, no matter who keeps the filter. So an answer
//!    counts only if the number is still the same afterwards.
//! 4. A view with very many segments is not kept, so idle threads hold few of the maps that
//!    [`max_mapped_filters`](crate::options::Options::max_mapped_filters) allows.

use super::counts::{FilterCounters, FilterCounts};
use super::filters::Filters;
use crate::shards::{Claim, Shards};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// The number of stores whose filters a thread keeps. A store's number decides its slot.
const SLOTS: usize = 4;

/// The filters of a view, and the thread's counters of their answers.
pub(super) struct KeptFilters {
    store: u64,
    view: u64,
    pub filters: Arc<Filters>,
    counts: Arc<FilterCounts>,
    is_alone: bool,
    /// Keeps the counters the thread's own.
    _claim: Claim,
}

impl KeptFilters {
    #[inline(always)]
    pub fn counters(&self) -> FilterCounters<'_> {
        FilterCounters { counts: &self.counts, is_alone: self.is_alone }
    }
}

/// Without a destructor, so that an access neither registers one nor asks whether it has run.
type Slot = Cell<Option<ManuallyDrop<Box<KeptFilters>>>>;

/// Drops what the thread keeps when the thread ends.
struct Cleanup;

thread_local! {
    static KEPT: [Slot; SLOTS] = const { [const { Cell::new(None) }; SLOTS] };
    static CLEANUP: Cleanup = const { Cleanup };
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        (0..SLOTS as u64).for_each(|slot| drop(exchange(slot, None)));
    }
}

/// Exchanges what is in the slot of a store.
#[inline(always)]
fn exchange(store: u64, kept: Option<Box<KeptFilters>>) -> Option<Box<KeptFilters>> {
    let exchanged =
        KEPT.try_with(|slots| slots.get(store as usize % SLOTS)?.replace(kept.map(ManuallyDrop::new)));
    exchanged.ok().flatten().map(ManuallyDrop::into_inner)
}

/// Takes out the filters of view `view` of a store, if this thread keeps them. [`put_back`] puts them back.
///
/// They are not lent to a closure, which would not be inlined: only what is inlined is compiled for the
/// instruction set of the probes.
#[inline(always)]
pub(super) fn take_kept(store: u64, view: u64) -> Option<Box<KeptFilters>> {
    let kept = exchange(store, None)?;
    if kept.view == view && kept.store == store {
        return Some(kept);
    }
    put_back(kept);
    None
}

/// Keeps these filters again.
#[inline(always)]
pub(super) fn put_back(kept: Box<KeptFilters>) {
    exchange(kept.store, Some(kept));
}

/// Keeps the filters of view `view` of a store, and drops others in the same slot, which may unmap files. A
/// thread that is ending keeps none.
pub(super) fn keep(store: u64, view: u64, filters: Arc<Filters>, counts: &Shards<Arc<FilterCounts>>) {
    if CLEANUP.try_with(|_| ()).is_err() {
        return;
    }
    let (counts, claim) = counts.claim();
    let (counts, is_alone) = (Arc::clone(counts), claim.is_alone());
    exchange(store, Some(Box::new(KeptFilters { store, view, filters, counts, is_alone, _claim: claim })));
}

/// Whether the thread keeps these filters of a store.
pub(super) fn are_kept(store: u64, filters: &Arc<Filters>) -> bool {
    let kept = exchange(store, None);
    let are = kept.as_ref().is_some_and(|kept| kept.store == store && Arc::ptr_eq(&kept.filters, filters));
    exchange(store, kept);
    are
}

/// Drops this thread's filters of a closed store.
pub(crate) fn forget_filters(store: u64) {
    let kept = exchange(store, None);
    exchange(store, kept.filter(|kept| kept.store != store));
}
