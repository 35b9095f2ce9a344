//! Range tombstones of segments in memory, within the budget of the block cache.
//!
//! 1. They are read when first needed, and stay until others need room. Cached reads take no lock.
//! 2. The clock algorithm chooses what to drop: the hand goes round the sets and drops the first one not used
//!    since its last pass. The set that was read last stays, no matter how large it is.

use super::cache::BlockCache;
use crate::ranges::RangeTombstones;
use crate::sync::{Mutex, lock};
use arc_swap::{ArcSwapOption, Guard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The sets of all segments of a store.
pub struct KeptRanges {
    cache: Arc<BlockCache>,
    ring: Mutex<Ring>,
}

/// The sets in memory with their sizes, the next one to look at first.
#[derive(Default)]
struct Ring {
    sets: VecDeque<(Weak<RangesSlot>, u64)>,
    bytes: u64,
}

/// The set of one segment, while it is in memory.
#[derive(Default)]
pub struct RangesSlot {
    set: ArcSwapOption<RangeTombstones>,
    used: AtomicBool,
}

impl RangesSlot {
    /// The set, if it is in memory.
    pub fn get(&self) -> Guard<Option<Arc<RangeTombstones>>> {
        let set = self.set.load();
        if set.is_some() && !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
        set
    }
}

impl KeptRanges {
    /// None yet, within the budget of `cache`.
    pub fn new(cache: Arc<BlockCache>) -> Self {
        KeptRanges { cache, ring: Mutex::default() }
    }

    /// Keeps a set in `slot`, and drops others if all together are too large. Returns the set to use: another
    /// thread may have been first.
    pub fn keep(&self, slot: &Arc<RangesSlot>, set: RangeTombstones) -> Arc<RangeTombstones> {
        let (bytes, set) = (set.bytes(), Arc::new(set));
        if !self.cache.is_used() {
            return set; // In a forked process.
        }
        let mut ring = lock(&self.ring);
        if let Some(first) = slot.set.load_full() {
            return first;
        }
        let dropped = ring.make_room(bytes, self.cache.ranges_max());
        slot.set.store(Some(Arc::clone(&set)));
        ring.sets.push_back((Arc::downgrade(slot), bytes));
        ring.bytes += bytes;
        self.cache.set_ranges(ring.bytes);
        drop(ring);
        drop(dropped); // A large one takes milliseconds.
        set
    }

    /// Drops sets until the others fit into the budget, which has shrunk.
    pub fn trim(&self) {
        if !self.cache.is_used() {
            return;
        }
        let mut ring = lock(&self.ring);
        let dropped = ring.make_room(0, self.cache.ranges_max());
        self.cache.set_ranges(ring.bytes);
        drop(ring);
        drop(dropped);
    }

    /// Gives back the memory of a segment that nobody needs any more.
    pub fn release(&self, slot: &Arc<RangesSlot>) {
        if slot.set.load().is_none() || !self.cache.is_used() {
            return;
        }
        let mut ring = lock(&self.ring);
        let is_it = |(of, _): &(Weak<RangesSlot>, u64)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(slot));
        if let Some((_, bytes)) = ring.sets.iter().position(is_it).and_then(|at| ring.sets.remove(at)) {
            ring.bytes = ring.bytes.saturating_sub(bytes);
            self.cache.set_ranges(ring.bytes);
        }
    }

    #[cfg(test)]
    /// Bytes of the sets in memory.
    pub fn bytes(&self) -> u64 {
        lock(&self.ring).bytes
    }
}

impl Ring {
    /// Drops sets until `bytes` more fit into `bytes_max`, or none is left. After a full round it takes any.
    fn make_room(&mut self, bytes: u64, bytes_max: u64) -> Vec<Arc<RangeTombstones>> {
        let (mut spared, mut dropped) = (self.sets.len(), Vec::new());
        while self.bytes.saturating_add(bytes) > bytes_max
            && let Some((slot, its)) = self.sets.pop_front()
        {
            let of = slot.upgrade();
            if spared > 0 && of.as_ref().is_some_and(|slot| slot.used.swap(false, Relaxed)) {
                spared -= 1;
                self.sets.push_back((slot, its));
                continue;
            }
            dropped.extend(of.and_then(|slot| slot.set.swap(None)));
            self.bytes = self.bytes.saturating_sub(its);
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn set(seq: u64) -> RangeTombstones {
        let all = (0..1000u32).map(|n| {
            let key = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
            RangeTombstones::of(key(2 * n), Some(key(2 * n + 1)), seq)
        });
        RangeTombstones::all(&all.collect::<Vec<_>>())
    }

    #[test]
    fn i12_range_tombstones_of_many_segments_stay_within_the_budget() {
        let one = set(1).bytes();
        let cache = Arc::new(BlockCache::new(20 * one));
        let kept = KeptRanges::new(Arc::clone(&cache));
        let budget = cache.ranges_max();
        let slots: Vec<Arc<RangesSlot>> = (0..200).map(|_| Arc::default()).collect();
        for (slot, seq) in slots.iter().zip(1..) {
            assert_eq!(kept.keep(slot, set(seq)).seq_at(&[0; 4]), seq);
            slots.first().unwrap().get(); // Always in use.
            assert!(kept.bytes() <= budget, "{} of {budget}", kept.bytes());
        }
        let there = |slot: &Arc<RangesSlot>| slot.get().is_some();
        let count = slots.iter().filter(|slot| there(slot)).count() as u64;
        assert!(there(&slots[0]) && (budget / one - 1..=budget / one).contains(&count), "{count}");
        slots.iter().for_each(|slot| kept.release(slot));
        assert_eq!(kept.bytes(), 0);
    }
}
