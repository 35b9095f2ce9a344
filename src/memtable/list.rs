//! The skiplist of a memtable: entries come, and none ever goes.

use super::entry::{MemKey, Position};
use crossbeam_epoch::{Collector, Guard};
use crossbeam_skiplist::SkipList;
use crossbeam_skiplist::base::{Entry, Iter};
use std::ops::Bound;

/// Entries in their order.
pub(super) struct EntryList(SkipList<MemKey, ()>);

/// The guard that guards nothing. With one of an epoch, each call would pay two fences for nodes that others
/// may remove.
#[inline]
fn unguarded() -> &'static Guard {
    // SAFETY: a guard keeps removed nodes in memory for those that still look at them. No method of
    // `EntryList` removes one: `get_or_insert` leaves an equal entry where it is. All go with the list, which
    // nobody borrows any more.
    unsafe { crossbeam_epoch::unprotected() }
}

impl EntryList {
    pub fn new() -> Self {
        EntryList(SkipList::new(Collector::new()))
    }

    /// Adds an entry, unless there is an equal one.
    pub fn insert(&self, key: MemKey) {
        self.0.get_or_insert(key, (), unguarded()).release(unguarded());
    }

    pub fn front(&self) -> Option<Entry<'_, '_, MemKey, ()>> {
        self.0.front(unguarded())
    }

    pub fn back(&self) -> Option<Entry<'_, '_, MemKey, ()>> {
        self.0.back(unguarded())
    }

    /// The first entry within a bound.
    pub fn lower_bound(&self, bound: Bound<&dyn Position>) -> Option<Entry<'_, '_, MemKey, ()>> {
        self.0.lower_bound(bound, unguarded())
    }

    /// The last entry within a bound.
    pub fn upper_bound(&self, bound: Bound<&dyn Position>) -> Option<Entry<'_, '_, MemKey, ()>> {
        self.0.upper_bound(bound, unguarded())
    }

    pub fn iter(&self) -> Iter<'_, '_, MemKey, ()> {
        self.0.iter(unguarded())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
