//! The pages of a memtable's tree.

use crate::memtable::entry::Prefix;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Slots of a page.
pub(super) const WIDTH: usize = 64;

/// Up to [`WIDTH`] slots, in the order of their entries. One thread at a time changes a page. Others may
/// search it meanwhile, and then see parts of different slots as one.
pub(super) struct Page {
    len: AtomicU32,
    /// The first eight bytes of each key, and the next eight.
    high: [AtomicU64; WIDTH],
    low: [AtomicU64; WIDTH],
    /// The numbers of the entries.
    entries: [AtomicU32; WIDTH],
    /// The numbers of the pages below, each of which begins with its entry. `None` in a leaf.
    children: Option<Box<[AtomicU32; WIDTH]>>,
}

/// What a slot has.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub prefix: Prefix,
    pub entry: u32,
    /// 0 in a leaf.
    pub child: u32,
}

impl Page {
    /// An empty page.
    pub fn new(is_leaf: bool) -> Box<Self> {
        Box::new(Page {
            len: AtomicU32::new(0),
            high: [const { AtomicU64::new(0) }; WIDTH],
            low: [const { AtomicU64::new(0) }; WIDTH],
            entries: [const { AtomicU32::new(0) }; WIDTH],
            children: (!is_leaf).then(|| Box::new([const { AtomicU32::new(0) }; WIDTH])),
        })
    }

    /// Whether no pages are below it.
    #[inline]
    pub fn is_leaf(&self) -> bool {
        self.children.is_none()
    }

    /// Number of slots.
    #[inline]
    pub fn len(&self) -> usize {
        (self.len.load(Acquire) as usize).min(WIDTH)
    }

    /// The number of a slot's entry.
    #[inline]
    pub fn entry(&self, at: usize) -> Option<u32> {
        self.entries.get(at).map(|entry| entry.load(Relaxed))
    }

    /// The number of the page below a slot.
    #[inline]
    pub fn child(&self, at: usize) -> Option<u32> {
        self.children.as_ref()?.get(at).map(|child| child.load(Relaxed))
    }

    /// How many slots come before a place among the keys with this prefix. `precedes` decides for an entry
    /// that has the prefix, too.
    #[inline]
    pub fn count_before(&self, prefix: Prefix, precedes: impl Fn(u32) -> bool) -> usize {
        let high = self.high.get(..self.len()).unwrap_or_default();
        let (mut at, mut size) = (0, high.len());
        // Without a branch that depends on a key, which would be mispredicted half of the time.
        while size > 0 {
            let half = size / 2;
            let is_less = high.get(at + half).is_some_and(|high| high.load(Relaxed) < prefix.high);
            (at, size) = if is_less { (at + half + 1, size - half - 1) } else { (at, half) };
        }
        match high.get(at) {
            Some(first) if first.load(Relaxed) == prefix.high => self.count_tied(at, prefix, precedes),
            _ => at,
        }
    }

    /// The same, if all slots ahead of `from` come before the place, and the next ones have the first eight
    /// bytes of the prefix.
    #[inline(never)]
    fn count_tied(&self, mut from: usize, prefix: Prefix, precedes: impl Fn(u32) -> bool) -> usize {
        let is_before = |at: usize| {
            let Some(Slot { prefix: of_slot, entry, .. }) = self.slot(at) else { return false };
            of_slot < prefix || of_slot == prefix && precedes(entry)
        };
        let mut to = self.len();
        while from < to {
            let middle = usize::midpoint(from, to);
            if is_before(middle) { from = middle + 1 } else { to = middle }
        }
        from
    }

    /// The prefix of a slot. `None` beyond the last one.
    #[inline]
    pub fn prefix(&self, at: usize) -> Option<Prefix> {
        let (high, low) = (self.high.get(..self.len())?.get(at)?, self.low.get(at)?);
        Some(Prefix { high: high.load(Relaxed), low: low.load(Relaxed) })
    }

    fn slot(&self, at: usize) -> Option<Slot> {
        let prefix = self.prefix(at)?;
        Some(Slot { prefix, entry: self.entry(at)?, child: self.child(at).unwrap_or_default() })
    }

    /// The first slot.
    pub fn first(&self) -> Option<Slot> {
        self.slot(0)
    }

    /// Adds a slot ahead of those from `at` on. Not in a full page.
    pub fn insert(&self, at: usize, slot: Slot) {
        let moved = at..self.len() + 1;
        let (copy_u64, copy_u32) = (
            |from: &AtomicU64, to: &AtomicU64| to.store(from.load(Relaxed), Relaxed),
            |from: &AtomicU32, to: &AtomicU32| to.store(from.load(Relaxed), Relaxed),
        );
        shift(self.high.get(moved.clone()), copy_u64);
        shift(self.low.get(moved.clone()), copy_u64);
        shift(self.entries.get(moved.clone()), copy_u32);
        if let Some(children) = &self.children {
            shift(children.get(moved.clone()), copy_u32);
        }
        self.put(at, slot);
        self.len.store(moved.end as u32, Release);
    }

    /// What [`insert`](Self::insert) has done to a page at a moment: the first bytes of its keys have moved,
    /// and the rest has not.
    #[cfg(test)]
    pub fn move_half(&self, at: usize) {
        shift(self.high.get(at..self.len() + 1), |from, to| to.store(from.load(Relaxed), Relaxed));
    }

    pub(super) fn put(&self, at: usize, slot: Slot) {
        if let (Some(high), Some(low), Some(entry)) =
            (self.high.get(at), self.low.get(at), self.entries.get(at))
        {
            high.store(slot.prefix.high, Relaxed);
            low.store(slot.prefix.low, Relaxed);
            entry.store(slot.entry, Relaxed);
        }
        if let Some(child) = self.children.as_ref().and_then(|children| children.get(at)) {
            child.store(slot.child, Relaxed);
        }
    }

    /// Moves the slots from `at` on to a new page.
    pub fn split_off(&self, at: usize) -> Box<Self> {
        let right = Page::new(self.is_leaf());
        let slots = (at..self.len()).filter_map(|from| self.slot(from));
        let moved = slots.enumerate().map(|(to, slot)| right.put(to, slot)).count();
        right.len.store(moved as u32, Release);
        self.len.store(at as u32, Release);
        right
    }
}

/// Copies each of the slots but the last one to the next.
#[inline]
fn shift<T>(slots: Option<&[T]>, copy: impl Fn(&T, &T)) {
    for pair in slots.unwrap_or_default().windows(2).rev() {
        if let [from, to] = pair {
            copy(from, to);
        }
    }
}
