//! A set of lines in a fixed amount of memory.

use sidebloom::KeyHasher;

/// Bytes before a line in the arena: a flag (taken) and the length.
const HEAD_BYTES: usize = 5;
/// Low bits of a slot: the offset in the arena plus one. The high bits, of the hash, save most comparisons.
const OFFSET_BITS: u32 = 40;

/// Open addressing over an arena; both are allocated once.
pub struct LineSet {
    /// 0 is free.
    slots: Vec<u64>,
    arena: Vec<u8>,
    arena_max: usize,
    len: usize,
    hasher: KeyHasher,
}

/// The memory is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

impl LineSet {
    /// An empty set in at most `bytes` of memory, a third of it for the table. `hasher` differs from the
    /// partitioning hasher, to spread the lines of a partition, and is secret, so nobody can choose colliding
    /// lines.
    pub fn new(bytes: usize, hasher: KeyHasher) -> Self {
        let slots = (bytes / 3 / size_of::<u64>()).max(2);
        let slots = 1 << slots.ilog2();
        let arena_max = bytes.saturating_sub(slots * size_of::<u64>());
        LineSet { slots: vec![0; slots], arena: Vec::with_capacity(arena_max), arena_max, len: 0, hasher }
    }

    /// Forgets all lines and keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.arena.clear();
        self.len = 0;
    }

    /// Adds a line unless it is present.
    pub fn insert(&mut self, line: &[u8]) -> Result<(), Full> {
        let hash = self.hasher.hash(line);
        let (slot, found) = self.find(line, hash);
        if found.is_some() {
            return Ok(());
        }
        let at = self.arena.len();
        let full = at + HEAD_BYTES + line.len() > self.arena_max || self.len * 4 >= self.slots.len() * 3;
        if full {
            return Err(Full);
        }
        self.arena.push(0);
        self.arena.extend_from_slice(&(line.len() as u32).to_le_bytes());
        self.arena.extend_from_slice(line);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = hash >> OFFSET_BITS << OFFSET_BITS | (at as u64 + 1);
        }
        self.len += 1;
        Ok(())
    }

    /// Takes the line. Returns whether it was present and not taken before.
    pub fn take(&mut self, line: &[u8]) -> bool {
        let (_, found) = self.find(line, self.hasher.hash(line));
        match found.and_then(|at| self.arena.get_mut(at)) {
            Some(taken) => std::mem::replace(taken, 1) == 0,
            None => false,
        }
    }

    /// The line's slot, or the free slot where it belongs, and its offset in the arena.
    fn find(&self, line: &[u8], hash: u64) -> (usize, Option<usize>) {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        // The table is never full, so the search ends at a free slot.
        while let Some(&entry) = self.slots.get(slot)
            && entry != 0
        {
            let at = (entry & ((1 << OFFSET_BITS) - 1)) as usize - 1;
            if entry >> OFFSET_BITS == hash >> OFFSET_BITS && self.line_at(at) == Some(line) {
                return (slot, Some(at));
            }
            slot = (slot + 1) & mask;
        }
        (slot, None)
    }

    /// Slots examined to find a line.
    #[cfg(test)]
    pub fn probes(&self, line: &[u8]) -> u64 {
        let hash = self.hasher.hash(line);
        let (slot, _) = self.find(line, hash);
        (slot.wrapping_sub(hash as usize) & (self.slots.len() - 1)) as u64 + 1
    }

    fn line_at(&self, at: usize) -> Option<&[u8]> {
        let (head, rest) = self.arena.get(at..)?.split_first_chunk::<HEAD_BYTES>()?;
        let [_, length @ ..] = head;
        rest.get(..u32::from_le_bytes(*length) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn takes_each_line_once_and_no_other(lines: Vec<Vec<u8>>, asked: Vec<Vec<u8>>) {
            let mut set = LineSet::new(1 << 16, 7.into());
            let mut model = HashSet::new();
            for line in &lines {
                prop_assert_eq!(set.insert(line), Ok(()));
                model.insert(line.clone());
            }
            for line in asked.iter().chain(&lines).chain(&lines) {
                prop_assert_eq!(set.take(line), model.remove(line));
            }
            set.clear();
            prop_assert!(lines.iter().all(|line| !set.take(line)));
        }
    }

    #[test]
    fn is_full_before_it_takes_more_memory_than_it_was_given() {
        for len in [0, 1, 100, 5000] {
            let mut set = LineSet::new(40_000, 7.into());
            let line = |i: u32| [&i.to_le_bytes()[..], &vec![b'x'; len]].concat();
            let held = (0..).find(|&i| set.insert(&line(i)) == Err(Full)).unwrap();
            assert!(set.arena.capacity() + 8 * set.slots.len() <= 40_000 && set.arena.len() <= set.arena_max);
            assert_eq!(set.insert(&line(0)), Ok(()), "it is there already");
            assert!((0..held).all(|i| set.take(&line(i))) && !set.take(&line(held)));
        }
    }
}
