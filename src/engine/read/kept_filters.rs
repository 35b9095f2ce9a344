//! The filters that a thread used last, so that a missing key needs no atomic read-modify-write: such an
//! instruction would also keep the CPU from starting the next lookup while it waits for the lines of this
//! one.
//!
//! 1. Each store counts its views. A thread keeps the filters of the last view that it asked, with the view's
//!    number.
//! 2. While the number is still the store's, the filters are those of the current view.
//! 3. A thread that does not read again keeps old filters, but neither memtables nor segments. A memtable or
//!    a segment that goes takes the memory and the file of its filter along, whoever keeps that, so an answer
//!    counts only if the number is still the same afterwards.
//! 4. A view with very many segments is not kept, so that idle threads hold few of the maps that
//!    [`max_mapped_filters`](crate::options::Options::max_mapped_filters) allows.

use super::route::Filters;
use std::cell::RefCell;
use std::sync::Arc;

/// Stores whose filters a thread keeps. A store's number decides its place.
const SLOTS: usize = 4;

/// The filters of a view.
struct KeptFilters {
    store: u64,
    view: u64,
    filters: Arc<Filters>,
}

thread_local!(static KEPT: RefCell<[Option<KeptFilters>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) });

/// Calls `ask` with the filters of view number `view` of a store, taken from `load` if this thread has
/// others.
#[inline(always)]
pub(crate) fn with<R>(
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

/// Keeps filters in place of others of the same place. A thread that is ending keeps none.
#[inline(never)]
fn keep(newer: KeptFilters) {
    let place = newer.store as usize % SLOTS;
    // The older filters are dropped outside the borrow: that may unmap files.
    let _older = KEPT.try_with(|kept| kept.try_borrow_mut().ok()?.get_mut(place)?.replace(newer));
}

/// Whether the thread has kept these filters of a store, so that they are those of its last [`with`].
pub(crate) fn are(store: u64, filters: &Arc<Filters>) -> bool {
    let are = KEPT.try_with(|kept| {
        let kept = kept.try_borrow().ok()?;
        let kept = kept.get(store as usize % SLOTS)?.as_ref()?;
        Some(kept.store == store && Arc::ptr_eq(&kept.filters, filters))
    });
    matches!(are, Ok(Some(true)))
}

/// Drops this thread's filters of a store that is closed.
pub(crate) fn forget(store: u64) {
    let _dropped = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        kept.get_mut(store as usize % SLOTS)?.take_if(|kept| kept.store == store)
    });
}
