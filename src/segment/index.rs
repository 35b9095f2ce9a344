//! Index blocks: separators of consecutive blocks. Partitions and the top index have the same form.

use super::format::{
    BlockHandle, DATA_STORED_MAX, MAX_BLOCK_BYTES, MIN_SEPARATOR_BYTES, Parsed, TRAILER_BYTES,
};
use crate::codec::{Decoder, Encode};
use crate::key::{MAX_STORED_KEY_BYTES, common_prefix, prefix8, same_bytes};
use std::ops::Range;

/// Memory of an [`Index`] apart from its separators, in bytes per separator.
const SEPARATOR_OVERHEAD_BYTES: usize = 20;
/// A partition ends when it has this [`weight`](IndexBuilder::weight).
pub(super) const PARTITION_BYTES: usize = 4 << 10;
/// The most that a partition weighs: less than that, plus one separator.
const PARTITION_WEIGHT_MAX: usize = PARTITION_BYTES + MAX_STORED_KEY_BYTES + SEPARATOR_OVERHEAD_BYTES;
/// Length of an index block apart from its separators: base, count and trailer.
const INDEX_FRAME_BYTES: usize = 8 + 4 + TRAILER_BYTES;
/// A separator takes less in the block than in memory.
const PARTITION_STORED_MAX: usize = INDEX_FRAME_BYTES + PARTITION_WEIGHT_MAX;
/// How much longer a partition is, at least, than its separator in the top index: its separators have every
/// byte of the last one.
const PARTITION_EXCESS_BYTES: usize = INDEX_FRAME_BYTES + MIN_SEPARATOR_BYTES;
/// Room for separators before the first one is read. A damaged count reserves no more than that.
const SEPARATORS_AHEAD: usize = 1 << 10;

/// What the blocks of an index are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexed {
    /// Data blocks: the index is a partition.
    Data,
    /// Partitions: it is the top index.
    Partitions,
}

/// Collects the separators of one index block.
pub struct IndexBuilder {
    base: u64,
    count: u32,
    last: Vec<u8>,
    body: Vec<u8>,
    weight: usize,
}

impl IndexBuilder {
    /// An index of blocks that start at offset `base`.
    pub fn new(base: u64) -> Self {
        IndexBuilder { base, count: 0, last: Vec::new(), body: Vec::new(), weight: 0 }
    }

    /// Adds the next block.
    pub fn append(&mut self, separator: &[u8], block_len: u32) {
        let shared = common_prefix(&self.last, separator);
        self.body.put_varint(shared as u64);
        self.body.put_varint((separator.len() - shared) as u64);
        self.body.put_varint(u64::from(block_len));
        self.body.extend_from_slice(&separator[shared..]);
        self.last.clear();
        self.last.extend_from_slice(separator);
        self.count += 1;
        self.weight += separator.len() + SEPARATOR_OVERHEAD_BYTES;
    }

    /// Approximate memory of the parsed index, in bytes.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// The last separator.
    pub fn last(&self) -> &[u8] {
        &self.last
    }

    /// Appends the block's payload to `out`.
    pub fn finish_into(self, out: &mut Vec<u8>) {
        out.put_u64(self.base);
        out.put_u32(self.count);
        out.extend_from_slice(&self.body);
    }
}

/// The shortest key that is at least `last` and less than `next`, for `last` < `next`.
pub fn separator<'a>(last: &'a [u8], next: &'a [u8]) -> &'a [u8] {
    let upto = common_prefix(last, next) + 1;
    match next.get(..upto) {
        Some(short) if upto < next.len() && upto < last.len() => short,
        _ => last,
    }
}

/// An index block, laid out for search: the eight bytes after the prefix that all separators share form an
/// array of integers, so that a search touches few cache lines.
pub struct Index {
    /// Length of the prefix that all separators share.
    common: usize,
    prefixes: Box<[u64]>,
    keys: Box<[u8]>,
    /// The end of each separator in `keys`.
    ends: Box<[u32]>,
    /// The start of each block, and the end of the last one.
    offsets: Box<[u64]>,
}

/// A data block: block `at` of index partition `number`.
#[derive(Clone, Copy)]
pub struct BlockPlace<'a> {
    /// The partition.
    pub partition: &'a Index,
    /// Its number in the top index.
    pub number: usize,
    /// The block's number in it.
    pub at: usize,
}

impl BlockPlace<'_> {
    /// Where it lies in the file.
    #[inline]
    pub fn handle(self) -> BlockHandle {
        self.partition.handle(self.at)
    }
}

impl Index {
    /// Parses a payload whose crc has been checked. It takes no more memory than the file justifies: a
    /// partition is small, and the top index repeats what the partitions have.
    pub fn parse(payload: &[u8], of: Indexed) -> Parsed<Self> {
        let mut fields = Decoder::new(payload);
        let (Some(mut offset), Some(count)) = (fields.u64(), fields.u32()) else {
            return Err("the index block is too short");
        };
        let count = count as usize;
        // Bounded by the block's length, so that a damaged count cannot ask for more memory than that.
        if count == 0 || count > fields.remaining() / MIN_SEPARATOR_BYTES {
            return Err("the index block has an impossible count");
        }
        let ahead = count.min(SEPARATORS_AHEAD);
        let mut keys = Vec::with_capacity(payload.len().min(PARTITION_WEIGHT_MAX));
        let (mut ends, mut offsets) = (Vec::with_capacity(ahead), Vec::with_capacity(ahead + 1));
        offsets.push(offset);
        let mut last = 0..0;
        while ends.len() < count {
            let len = append_separator(&mut fields, &mut keys, &last)?;
            let next = last.end..keys.len();
            let weight = keys.len() + (ends.len() + 1) * SEPARATOR_OVERHEAD_BYTES;
            let is_justified = match of {
                Indexed::Data => weight <= PARTITION_WEIGHT_MAX && len <= DATA_STORED_MAX as u64,
                Indexed::Partitions => {
                    len >= (next.len() + PARTITION_EXCESS_BYTES) as u64 && len <= PARTITION_STORED_MAX as u64
                }
            };
            if !is_justified {
                return Err("a separator or its block is too long");
            }
            if !ends.is_empty() && keys[last] >= keys[next.clone()] {
                return Err("the separators are out of order");
            }
            last = next;
            offset = offset.checked_add(len).ok_or("a block would end beyond 2^64")?;
            ends.push(keys.len() as u32);
            offsets.push(offset);
        }
        if fields.remaining() != 0 {
            return Err("bytes follow the last separator");
        }
        let common = common_prefix(&keys[..ends[0] as usize], &keys[last]);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let prefixes =
            starts.zip(&ends).map(|(start, &end)| prefix8(&keys[start as usize + common..end as usize]));
        let prefixes = prefixes.collect();
        Ok(Index { common, prefixes, keys: keys.into(), ends: ends.into(), offsets: offsets.into() })
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The range that the blocks cover.
    pub fn area(&self) -> Range<u64> {
        let ends = (self.offsets.first(), self.offsets.last());
        ends.0.copied().unwrap_or_default()..ends.1.copied().unwrap_or_default()
    }

    /// Approximate memory, in bytes.
    pub fn weight(&self) -> usize {
        self.keys.len() + self.len() * SEPARATOR_OVERHEAD_BYTES
    }

    /// Separator `at`.
    #[inline]
    pub fn separator(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.keys[start..self.ends[at] as usize]
    }

    /// Where block `at` lies.
    #[inline]
    pub fn handle(&self, at: usize) -> BlockHandle {
        let offset = self.offsets[at];
        BlockHandle { offset, len: (self.offsets[at + 1] - offset) as u32 }
    }

    /// The range to read for block `at` and the blocks after it (or before it when `backwards`): at most
    /// `bytes`, but always the whole block. Starts and ends at block boundaries.
    pub fn span(&self, at: usize, backwards: bool, bytes: u64) -> Range<u64> {
        let (start, end) = (self.offsets[at], self.offsets[at + 1]);
        if backwards {
            let first = self.offsets.partition_point(|&offset| offset < end.saturating_sub(bytes));
            self.offsets[first.min(at)]..end
        } else {
            let behind = self.offsets.partition_point(|&offset| offset <= start.saturating_add(bytes));
            start..self.offsets[behind.max(at + 2) - 1]
        }
    }

    /// The number of the block that could hold `key`: the first with a separator of at least `key`.
    /// [`len`](Self::len) if all are less.
    #[inline]
    pub fn seek(&self, key: &[u8]) -> usize {
        self.touch();
        let common = &self.keys[..self.common];
        let rest = match key.split_at_checked(self.common) {
            Some((head, rest)) if same_bytes(head, common) => rest,
            _ => return if key < common { 0 } else { self.len() },
        };
        let sought = prefix8(rest);
        let mut low = self.prefixes.partition_point(|&prefix| prefix < sought);
        if self.prefixes.get(low) != Some(&sought) {
            return low;
        }
        let mut high = low + self.prefixes[low..].partition_point(|&prefix| prefix == sought);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.separator(middle) < key { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Loads every line that a search may read. The loads are independent, so the CPU overlaps them; a binary
    /// search alone would wait for one after another.
    #[inline]
    fn touch(&self) {
        const LINE_PREFIXES: usize = 8;
        let key = self.keys.first().copied().unwrap_or_default();
        let lines = self.prefixes.iter().step_by(LINE_PREFIXES).take(LINES_MAX);
        std::hint::black_box(lines.fold(u64::from(key), |seen, prefix| seen | prefix));
    }
}

/// The most cache lines of prefixes that a search loads ahead. A partition of short separators has no more.
const LINES_MAX: usize = 24;

/// Decodes a separator and appends it to `keys`; the previous one is at `before`. Returns its block's length.
fn append_separator(fields: &mut Decoder<'_>, keys: &mut Vec<u8>, before: &Range<usize>) -> Parsed<u64> {
    let mut decode = || Some((fields.length()?, fields.length()?, fields.varint()?));
    let (shared, rest, len) = decode().ok_or("a separator does not parse")?;
    let rest = fields.take(rest).ok_or("a separator is cut short")?;
    if shared > before.len() || shared + rest.len() > MAX_STORED_KEY_BYTES || len <= TRAILER_BYTES as u64 {
        return Err("a separator has impossible lengths");
    }
    if keys.len() + shared + rest.len() > MAX_BLOCK_BYTES {
        return Err("the separators expand beyond the maximum block size");
    }
    keys.extend_from_within(before.start..before.start + shared);
    keys.extend_from_slice(rest);
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    fn index(separators: impl IntoIterator<Item = Vec<u8>>) -> Index {
        let mut builder = IndexBuilder::new(100);
        separators.into_iter().enumerate().for_each(|(i, key)| builder.append(&key, 10 + i as u32));
        let mut payload = Vec::new();
        builder.finish_into(&mut payload);
        Index::parse(&payload, Indexed::Data).unwrap()
    }

    proptest! {
        #[test]
        fn separator_lies_between_and_is_never_longer_than_the_key(a in "[ab]{0,6}", b in "[abc]{0,6}") {
            let (last, next) = if a <= b { (a, b) } else { (b, a) };
            prop_assume!(last != next);
            let found = separator(last.as_bytes(), next.as_bytes());
            prop_assert!(last.as_bytes() <= found && found < next.as_bytes() && found.len() <= last.len());
        }

        #[test]
        fn seek_is_the_linear_search_also_among_equal_prefixes(
            common in "a{0,10}",
            keys in btree_set(vec(0u8..3, 0..12), 1..40),
            sought in vec(0u8..3, 0..12),
        ) {
            let whole = |rest: &Vec<u8>| [common.as_bytes(), rest].concat();
            let keys: Vec<Vec<u8>> = keys.iter().map(whole).collect();
            let index = index(keys.clone());
            for key in keys.iter().cloned().chain([whole(&sought), sought, b"b".to_vec(), Vec::new()]) {
                let linear = keys.iter().position(|separator| *separator >= key).unwrap_or(keys.len());
                prop_assert_eq!(index.seek(&key), linear);
            }
            (0..keys.len()).for_each(|i| assert_eq!(index.separator(i), keys[i]));
        }

        #[test]
        fn seek_is_the_linear_search_in_indexes_of_many_lines(
            even in vec(0u64.., 1..300), crowded in vec(0u64..50, 0..100), shift in 0u32..50, sought in vec(0u64.., 20),
        ) {
            let all = even.iter().map(|n| n >> shift).chain(crowded);
            let keys: std::collections::BTreeSet<Vec<u8>> = all.map(|n| n.to_be_bytes().to_vec()).collect();
            let keys: Vec<Vec<u8>> = keys.into_iter().collect();
            let index = index(keys.clone());
            let others = sought.iter().flat_map(|n| [*n, n >> shift]).map(|n| n.to_be_bytes().to_vec());
            for key in keys.iter().cloned().chain(others) {
                prop_assert_eq!(index.seek(&key), keys.partition_point(|separator| *separator < key));
            }
        }

        #[test]
        fn span_holds_its_block_and_whole_neighbours_within_the_size(
            count in 1usize..20, at in 0usize..20, bytes in 0u64..200, backwards: bool,
        ) {
            let at = at % count;
            let index = index((0..count as u8).map(|i| vec![i]));
            let (span, block) = (index.span(at, backwards, bytes), index.handle(at));
            prop_assert!(span.start <= block.offset && block.end() <= span.end);
            prop_assert!(index.offsets.contains(&span.start) && index.offsets.contains(&span.end));
            prop_assert!(span.end - span.start <= bytes.max(u64::from(block.len)));
            let wider = if backwards { span.start > 100 } else { span.end < index.area().end };
            let neighbour = if backwards {
                index.handle(index.offsets.iter().position(|&o| o == span.start).unwrap().saturating_sub(1))
            } else {
                index.handle(index.offsets.iter().position(|&o| o == span.end).unwrap().min(count - 1))
            };
            prop_assert!(!wider || span.end - span.start + u64::from(neighbour.len) > bytes);
        }
    }

    #[test]
    fn i6_an_index_expands_to_no_more_than_its_file_justifies() {
        let key = |n: u8| [&[7; 60_000][..], &[n]].concat();
        let parsed = |keys: u8, block_len: u32, of| {
            let mut builder = IndexBuilder::new(0);
            (0..keys).for_each(|n| builder.append(&key(n), block_len));
            let mut payload = Vec::new();
            builder.finish_into(&mut payload);
            Index::parse(&payload, of).map(|index| index.weight())
        };
        let justified = (60_001 + PARTITION_EXCESS_BYTES) as u32;
        assert_eq!(parsed(9, justified, Indexed::Partitions), Ok(9 * (60_001 + SEPARATOR_OVERHEAD_BYTES)));
        assert!(parsed(9, justified - 1, Indexed::Partitions).is_err(), "longer than its partition");
        assert!(parsed(9, 1 << 20, Indexed::Partitions).is_err(), "a partition of a megabyte");
        assert!(parsed(1, 10, Indexed::Data).is_ok());
        assert!(parsed(2, 10, Indexed::Data).is_err(), "more than a partition has");
        assert!(parsed(1, DATA_STORED_MAX as u32 + 1, Indexed::Data).is_err());
    }

    #[test]
    fn i6_index_payloads_cut_anywhere_are_refused() {
        let mut builder = IndexBuilder::new(0);
        (0..20u8).for_each(|i| builder.append(&[7, 7, i], 100));
        let mut payload = Vec::new();
        builder.finish_into(&mut payload);
        assert!(Index::parse(&payload, Indexed::Data).is_ok());
        (0..payload.len())
            .for_each(|n| assert!(Index::parse(&payload[..n], Indexed::Data).is_err(), "cut at {n}"));
    }
}
