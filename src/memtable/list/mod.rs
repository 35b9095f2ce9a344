//! The entries of a memtable in their order. Entries come, and none ever goes.
//!
//! 1. Each entry knows the next one. This chain has the order.
//! 2. Above it is a tree of pages (Bayer and McCreight, "Organization and maintenance of large ordered
//!    indices", 1972): a page has the first bytes of 64 keys side by side, so a search reads few cache lines
//!    where a skiplist would read one or two for each key that it compares.
//! 3. One thread at a time inserts. Others search without a lock, even in a page whose slots it moves, or
//!    never will move on, in a forked process. So a search takes what the pages say for a hint: an entry that
//!    in fact comes before the place, or it searches again, and after a few times takes any hint to the left.
//!    From there it follows the chain, mostly by one step.

mod nodes;
mod page;
#[cfg(test)]
mod tests;

use self::nodes::Nodes;
use self::page::{Page, Slot, WIDTH};
use super::entry::{MemKey, Place, Prefix};
use crate::sync::{Mutex, lock};
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// No entry, or no page. [`Options::memtable_bytes`](crate::Options::memtable_bytes) keeps numbers below it.
const NONE: u32 = u32::MAX;
/// How often a search expects a good hint of the pages before it is content with any.
const TRIES: usize = 4;
/// Steps along the chain that are worth it. More are needed if pages have changed under a search.
const STEPS_MAX: usize = 4 * WIDTH;

/// Entries in their order.
pub(super) struct EntryList {
    nodes: Nodes<Node>,
    pages: boxcar::Vec<Box<Page>>,
    /// The number of the first entry.
    first: AtomicU32,
    /// The number of the topmost page.
    root: AtomicU32,
    inserting: Mutex<()>,
}

struct Node {
    item: MemKey,
    /// The number of the next entry.
    next: AtomicU32,
}

/// An entry in its list.
#[derive(Clone, Copy)]
pub(super) struct EntryRef<'l> {
    list: &'l EntryList,
    node: &'l Node,
}

/// The last entry before a place, and the first one that is not.
type Around<'l> = (Option<EntryRef<'l>>, Option<EntryRef<'l>>);

impl<'l> EntryRef<'l> {
    /// The entry.
    #[inline]
    pub fn key(&self) -> &'l MemKey {
        &self.node.item
    }

    /// The next one.
    #[inline]
    pub fn next(&self) -> Option<Self> {
        self.list.entry(self.node.next.load(Acquire))
    }

    /// The one before it.
    pub fn prev(&self) -> Option<Self> {
        self.list.last_before(Place::Before(self.key().search()))
    }
}

impl EntryList {
    pub fn new() -> Self {
        EntryList {
            nodes: Nodes::new(),
            pages: boxcar::Vec::new(),
            first: AtomicU32::new(NONE),
            root: AtomicU32::new(NONE),
            inserting: Mutex::new(()),
        }
    }

    /// Adds an entry, unless there is an equal one.
    pub fn insert(&self, item: MemKey) {
        let _inserting = lock(&self.inserting);
        let root = self.root.load(Relaxed);
        let root = if root == NONE { self.add_root(Page::new(true)) } else { root };
        let Some(split) = self.insert_below(root, item, true) else { return };
        let top = Page::new(false);
        top.insert(0, Slot { prefix: Prefix::LEAST, entry: NONE, child: root });
        top.insert(1, split);
        self.add_root(top);
    }

    fn add_root(&self, page: Box<Page>) -> u32 {
        let number = self.pages.push(page) as u32;
        self.root.store(number, Release);
        number
    }

    /// Inserts into the pages below one. Returns a new page beside it, if it was full. `is_last`: it has no
    /// page to its right.
    fn insert_below(&self, number: u32, item: MemKey, is_last: bool) -> Option<Slot> {
        let page = self.page(number)?;
        let at = self.count_before(page, Place::Before(item.search()));
        if page.is_leaf() {
            let before = at.checked_sub(1).and_then(|before| self.node(page.entry(before)?));
            let pointer = before.map_or(&self.first, |node| &node.next);
            let next = pointer.load(Relaxed);
            // The page mostly tells that the next one differs, without a look at it.
            if page.prefix(at).is_none_or(|prefix| prefix == item.prefix) && self.is_equal(next, &item) {
                return None;
            }
            let prefix = item.prefix;
            let entry = self.nodes.push(Node { item, next: AtomicU32::new(next) });
            pointer.store(entry, Release);
            return self.insert_slot(page, at, Slot { prefix, entry, child: 0 }, is_last);
        }
        let below = at.saturating_sub(1);
        let is_last_below = is_last && below + 1 == page.len();
        let split = self.insert_below(page.child(below)?, item, is_last_below)?;
        self.insert_slot(page, below + 1, split, is_last)
    }

    /// Adds a slot to a page. Returns a new page beside it, if it was full.
    fn insert_slot(&self, page: &Page, at: usize, slot: Slot, is_last: bool) -> Option<Slot> {
        if page.len() < WIDTH {
            page.insert(at, slot);
            return None;
        }
        // Ascending keys leave full pages behind.
        let right =
            if is_last && at == WIDTH { Page::new(page.is_leaf()) } else { page.split_off(WIDTH / 2) };
        match at.checked_sub(page.len()) {
            Some(at) if at > 0 || right.len() == 0 => right.insert(at, slot),
            _ => page.insert(at, slot),
        }
        let first = right.first()?;
        Some(Slot { child: self.pages.push(right) as u32, ..first })
    }

    #[inline]
    fn page(&self, number: u32) -> Option<&Page> {
        self.pages.get(number as usize).map(AsRef::as_ref)
    }

    #[inline]
    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number)
    }

    #[inline]
    fn entry(&self, number: u32) -> Option<EntryRef<'_>> {
        Some(EntryRef { list: self, node: self.node(number)? })
    }

    fn is_equal(&self, entry: u32, item: &MemKey) -> bool {
        self.node(entry).is_some_and(|node| node.item.search() == item.search())
    }

    /// How many slots of a page come before a place.
    #[inline]
    fn count_before(&self, page: &Page, place: Place<'_>) -> usize {
        match place {
            Place::Before(search) | Place::After(search) => page.count_before(search.prefix, |entry| {
                // A leftmost page has none, since smaller entries may still come.
                entry == NONE || self.node(entry).is_some_and(|node| place.is_after(&node.item))
            }),
            Place::End => page.len(),
        }
    }

    /// The last entry before a place.
    #[inline]
    pub fn last_before(&self, place: Place<'_>) -> Option<EntryRef<'_>> {
        self.around(place).0
    }

    /// The first entry that does not come before a place.
    #[inline]
    pub fn first_from(&self, place: Place<'_>) -> Option<EntryRef<'_>> {
        self.around(place).1
    }

    /// The last entry before a place, and the one that was next to it then: another may be there now.
    #[inline]
    fn around(&self, place: Place<'_>) -> Around<'_> {
        self.search_pages(place).unwrap_or_else(|| self.search_again(place))
    }

    #[cold]
    fn search_again(&self, place: Place<'_>) -> Around<'_> {
        if let Some(around) = (1..TRIES).find_map(|_| self.search_pages(place)) {
            return around;
        }
        let root = self.page(self.root.load(Acquire));
        let hint = root.and_then(|root| self.hint_below(root, place));
        self.follow(hint, place, usize::MAX).unwrap_or_default()
    }

    /// The rightmost entry of the pages below one that comes before the place, as far as they tell.
    fn hint_below(&self, page: &Page, place: Place<'_>) -> Option<EntryRef<'_>> {
        let at = self.count_before(page, place);
        if page.is_leaf() {
            let mut entries = (0..at).rev().filter_map(|before| self.entry(page.entry(before)?));
            return entries.find(|entry| place.is_after(entry.key()));
        }
        let mut children = (0..at.max(1)).rev().filter_map(|before| self.page(page.child(before)?));
        children.find_map(|child| self.hint_below(child, place))
    }

    /// `None` if pages have changed meanwhile.
    #[inline]
    fn search_pages(&self, place: Place<'_>) -> Option<Around<'_>> {
        let Some(mut page) = self.page(self.root.load(Acquire)) else {
            return self.follow(None, place, STEPS_MAX);
        };
        let mut at = self.count_before(page, place);
        while !page.is_leaf() {
            page = self.page(page.child(at.saturating_sub(1))?)?;
            at = self.count_before(page, place);
        }
        let last = match at.checked_sub(1) {
            Some(before) => {
                Some(self.entry(page.entry(before)?).filter(|entry| place.is_after(entry.key()))?)
            }
            None => None,
        };
        self.follow(last, place, STEPS_MAX)
    }

    /// Follows the chain from an entry before the place, or from its beginning. `None` if it is too far.
    #[inline]
    fn follow<'l>(
        &'l self,
        mut last: Option<EntryRef<'l>>,
        place: Place<'_>,
        most: usize,
    ) -> Option<Around<'l>> {
        for _ in 0..most {
            let next = last.map_or_else(|| self.front(), |last| last.next());
            if !next.is_some_and(|next| place.is_after(next.key())) {
                return Some((last, next));
            }
            last = next;
        }
        None
    }

    pub fn front(&self) -> Option<EntryRef<'_>> {
        self.entry(self.first.load(Acquire))
    }

    pub fn back(&self) -> Option<EntryRef<'_>> {
        self.last_before(Place::End)
    }

    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        std::iter::successors(self.front(), EntryRef::next)
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.first.load(Acquire) == NONE
    }
}
