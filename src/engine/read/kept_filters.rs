//! The filters that a thread used last, so that a missing key needs no atomic read-modify-write. Such an
//! instruction would also stop the CPU from starting the next lookup while it waits for this one's lines.
//!
//! 1. Each store counts its views. A thread keeps the filters of the last view that it used, with its number.
//! 2. As long as the store's number is the same, these filters belong to the current view.
//! 3. A thread that stops reading keeps old filters, but neither memtables nor segments. When a memtable or
//!    segment is dropped, so are its filter's memory and file, no matter who keeps the filter. So an answer
//!    counts only if the number is still the same afterwards.
//! 4. A view with very many segments is not kept, so idle threads hold few of the maps that
//!    [`max_mapped_filters`](crate::options::Options::max_mapped_filters) allows.

use super::route::Filters;
use std::cell::RefCell;
use std::sync::Arc;

/// The number of stores whose filters a thread keeps. A store's number decides its slot.
const SLOTS: usize = 4;

/// The filters of a view.
struct KeptFilters {
    store: u64,
    view: u64,
    filters: Arc<Filters>,
}

thread_local!(static KEPT: RefCell<[Option<KeptFilters>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) });

/// Calls `ask` with the filters of view `view` of a store; gets them from `load` unless this thread has them.
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

/// Keeps filters and replaces others in the same slot. A thread that is ending keeps none.
#[inline(never)]
fn keep(newer: KeptFilters) {
    let place = newer.store as usize % SLOTS;
    // The older filters are dropped outside the borrow: that may unmap files.
    let _older = KEPT.try_with(|kept| kept.try_borrow_mut().ok()?.get_mut(place)?.replace(newer));
}

/// Whether the thread keeps these filters of a store, because its last [`with`] used them.
pub(crate) fn are(store: u64, filters: &Arc<Filters>) -> bool {
    let are = KEPT.try_with(|kept| {
        let kept = kept.try_borrow().ok()?;
        let kept = kept.get(store as usize % SLOTS)?.as_ref()?;
        Some(kept.store == store && Arc::ptr_eq(&kept.filters, filters))
    });
    matches!(are, Ok(Some(true)))
}

/// Drops this thread's filters of a closed store.
pub(crate) fn forget(store: u64) {
    let _dropped = KEPT.try_with(|kept| {
        let mut kept = kept.try_borrow_mut().ok()?;
        kept.get_mut(store as usize % SLOTS)?.take_if(|kept| kept.store == store)
    });
}
