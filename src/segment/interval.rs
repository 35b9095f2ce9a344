//! A decoded restart interval, which a cursor walks in either direction.

use super::block::{Block, Head};
use super::format::{Parsed, RESTART_INTERVAL};
use crate::key::{EntryKind, MAX_KEY_BYTES, Seq};
use std::ops::Range;

/// At most sixteen entries with whole keys. The buffers are reused for the next interval.
#[derive(Default)]
pub struct Interval {
    keys: Vec<u8>,
    entries: Vec<IntervalEntry>,
}

/// One entry. Its key is in the interval's buffer, its value in the block.
pub struct IntervalEntry {
    key: Range<usize>,
    /// The value's range in the block.
    pub value: Range<usize>,
    /// Sequence number.
    pub seq: Seq,
    /// Put or tombstone.
    pub kind: EntryKind,
}

impl Interval {
    /// Decodes interval number `number` of `block`. After an error the interval is empty.
    pub fn decode(&mut self, block: &Block, number: usize) -> Parsed<()> {
        self.fill(block, number).inspect_err(|_| self.entries.clear())
    }

    fn fill(&mut self, block: &Block, number: usize) -> Parsed<()> {
        self.keys.clear();
        self.entries.clear();
        let (mut heads, values) = block.interval(number)?;
        let (mut before, mut value_at) = (0..0, values.start);
        while heads.remaining() > 0 {
            let head = Head::decode(&mut heads)?;
            let start = self.keys.len();
            if head.shared > before.len() {
                return Err("an entry shares more bytes than the previous key has");
            }
            // Prefixes expand: without these bounds a block of a few kilobytes could ask for gigabytes of keys.
            if self.entries.len() == RESTART_INTERVAL {
                return Err("a restart interval has too many entries");
            }
            if head.shared + head.rest.len() > MAX_KEY_BYTES {
                return Err("a key exceeds the size limit");
            }
            self.keys.extend_from_within(before.start..before.start + head.shared);
            self.keys.extend_from_slice(head.rest);
            if head.value_len > values.end - value_at {
                return Err("a value extends beyond its interval");
            }
            let value = value_at..value_at + head.value_len;
            value_at = value.end;
            before = start..self.keys.len();
            self.entries.push(IntervalEntry { key: before.clone(), value, seq: head.seq, kind: head.kind });
        }
        Ok(())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entry `at`; `None` beyond the last one.
    #[inline]
    pub fn entry(&self, at: usize) -> Option<&IntervalEntry> {
        self.entries.get(at)
    }

    /// The key of entry `at`; empty beyond the last one.
    #[inline]
    pub fn key(&self, at: usize) -> &[u8] {
        self.entries.get(at).map_or(&[], |entry| &self.keys[entry.key.clone()])
    }

    /// Number of leading entries whose key satisfies `holds`.
    pub fn count_while(&self, holds: impl Fn(&[u8]) -> bool) -> usize {
        self.entries.partition_point(|entry| holds(&self.keys[entry.key.clone()]))
    }
}
