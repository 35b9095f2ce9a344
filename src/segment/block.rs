//! Data blocks in memory: finding a key in one, and its rows.

use super::block_builder::BlockBuilder;
use super::block_check::check;
use super::block_layout::{BlockHeader, HEADER_BYTES, Layout, fingerprint, layout_of};
use super::compress::Payload;
use super::format::Parsed;
use crate::codec::{low_bytes, uint_at};
use crate::hash::KeyHasher;
use crate::key::{Entry, EntryKind, LongFront, Seq, SplitKey, Value, front_of, long_front, same_bytes};
use bytes::Bytes;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A block in memory that may be longer. Its checksum and the bounds of its areas have been verified. Clones
/// share the bytes. Kept small, because the block cache stores it in its table.
pub struct Block(Arc<[u8]>);

/// The front of a block, in cache lines: header, fingerprints and the first arrays. A search reads it first.
const FRONT_LINES: usize = 8;
const LINE_BYTES: usize = 64;
/// The most cache lines that [`Block::prefetch`] fetches: 4 KiB, a block of the default size.
const PREFETCH_LINES: usize = 64;
/// The most fingerprints a search compares. In a larger block, it first searches keys down to this many.
const FINGERPRINTS_MAX: usize = 256;

impl Clone for Block {
    /// Prefetches the front for the next search. The CPU overlaps these misses, also with the reference
    /// count's; a search alone would wait for one after another.
    #[inline]
    fn clone(&self) -> Self {
        Block::prefetch_front(&self.0);
        Block(self.0.clone())
    }
}

impl Block {
    /// Starts to load the lines of a block that a search reads first.
    #[inline]
    pub fn prefetch_front(bytes: &[u8]) {
        bytes.chunks(LINE_BYTES).take(FRONT_LINES).for_each(sidebloom_filter::prefetch);
    }

    /// A copy of a mapped block that was [checked](check) before, though it may have changed since.
    pub fn copied(bytes: &[u8]) -> Self {
        Block(Payload::from(bytes).into_memory())
    }

    /// Takes a payload with the decoded values of a mapped block that was [checked](check) before.
    pub fn decoded(payload: Payload) -> Self {
        Block(payload.into_memory())
    }

    /// Takes a decompressed payload, and [checks](check) it.
    pub fn parse(payload: Payload) -> Parsed<Self> {
        check(&payload)?;
        let rows = Rows::mapped(&payload);
        if rows.has_coded_values() {
            return Err("the values of the data block are coded, but its type says they are not");
        }
        Ok(Block(payload.into_memory()))
    }

    /// Length of its memory, in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Its memory.
    pub fn into_memory(self) -> Arc<[u8]> {
        self.0
    }

    /// Starts to load the first 4 KiB into the CPU's caches.
    pub fn prefetch(&self) {
        Block::prefetch_bytes(&self.0);
    }

    /// [`prefetch`](Self::prefetch) of a mapped block.
    pub fn prefetch_bytes(bytes: &[u8]) {
        bytes.chunks(LINE_BYTES).take(PREFETCH_LINES).for_each(sidebloom_filter::prefetch);
    }

    /// The rows.
    #[inline]
    pub fn rows(self) -> Rows {
        let layout = layout_of(&self.0);
        Rows { bytes: self.0, layout }
    }
}

/// The rows of a block that was [checked](check), read in place. Past the last row, keys and values are
/// empty, and sequence numbers mean nothing.
#[derive(Default)]
pub struct Rows<B = Arc<[u8]>> {
    bytes: B,
    layout: Layout,
}

impl Rows {
    /// The memory of the block.
    pub fn into_memory(self) -> Arc<[u8]> {
        self.bytes
    }

    /// The rows of a mapped block, [checked](check) before, as copies without their values, which are empty.
    pub fn without_values(bytes: &[u8]) -> Self {
        let layout = layout_of(bytes);
        let keys = bytes.get(..layout.values).unwrap_or(bytes);
        Rows { bytes: Payload::from(keys).into_memory(), layout }
    }

    /// The value of row `at`, sharing the memory of the block.
    #[inline]
    pub fn to_value(&self, at: usize) -> Value {
        Value::of_block(Arc::clone(&self.bytes), self.value_range(at))
    }

    /// The entry of a key with this hash. A row with a different fingerprint has another key.
    #[inline]
    pub fn get(self, key: &[u8], hash: u64) -> Option<Entry> {
        let at = self.find(key, hash)?;
        let (seq, kind, value) = (self.seq(at), self.kind(at), self.value_range(at));
        Some(Entry { seq, kind, value: Value::of_block(self.bytes, value) })
    }
}

impl<'a> Rows<&'a [u8]> {
    /// The rows of a mapped block, which may have changed since it was checked: reading them cannot fail.
    #[inline]
    pub fn mapped(bytes: &'a [u8]) -> Self {
        Rows { bytes, layout: layout_of(bytes) }
    }

    /// [`get`](Rows::get) with a copy of the value. `decode` makes it from a part of the block if values are
    /// coded.
    #[inline]
    pub fn get_copied(
        &self,
        key: &[u8],
        hash: u64,
        decode: impl FnOnce(Range<usize>) -> Option<Bytes>,
    ) -> Option<Option<Entry>> {
        let Some(at) = self.find(key, hash) else { return Some(None) };
        let value = if self.has_coded_values() {
            decode(self.value_range(at))?
        } else {
            Bytes::copy_from_slice(self.value(at))
        };
        Some(Some(Entry { seq: self.seq(at), kind: self.kind(at), value: Value::new(value) }))
    }

    /// The header, and the areas around the ends of the values.
    pub fn areas(&self) -> Option<Areas<'a>> {
        let Layout { header, value_ends, seqs, values, .. } = self.layout;
        let before_ends = self.bytes.get(HEADER_BYTES..value_ends)?;
        Some(Areas { header, before_ends, after_ends: self.bytes.get(seqs..values)? })
    }
}

/// The parts of a block that do not depend on its values.
pub struct Areas<'a> {
    pub header: BlockHeader,
    pub before_ends: &'a [u8],
    pub after_ends: &'a [u8],
}

impl<B: Deref<Target = [u8]>> Rows<B> {
    /// Length of the block, in bytes.
    pub fn bytes(&self) -> usize {
        self.layout.end
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.layout.header.count as usize
    }

    /// The key of row `at`.
    #[inline]
    pub fn key(&self, at: usize) -> SplitKey<'_> {
        if at < self.len() { SplitKey::new(self.prefix(), self.suffix(at)) } else { SplitKey::default() }
    }

    /// The [front](SplitKey::front) of the prefix that all keys share.
    #[inline]
    pub fn shared_front(&self) -> u128 {
        SplitKey::from(self.prefix()).front()
    }

    /// The key with this [suffix](Self::suffix_range).
    #[inline]
    pub fn key_of(&self, suffix: Range<usize>) -> SplitKey<'_> {
        SplitKey::new(self.prefix(), self.bytes.get(suffix).unwrap_or_default())
    }

    /// The [front](SplitKey::front) of the key with this suffix, given that of what all keys share.
    #[inline]
    pub fn front_of(&self, suffix: Range<usize>, shared: u128) -> u128 {
        match self.layout.header.prefix {
            prefix @ 0..16 => shared | front_of(&self.bytes, suffix) >> (8 * prefix),
            _ => shared,
        }
    }

    /// Appends the fronts of the rows from `first` on, given that of what all keys share.
    pub fn list_fronts(&self, first: usize, shared: u128, out: &mut Vec<LongFront>) {
        let (prefix, mut key) = (self.layout.header.prefix as usize, Vec::new());
        let fronts = (first..self.len()).map(|at| {
            let suffix = self.suffix_range(at);
            if prefix > 16 {
                self.key_of(suffix).copy_into(&mut key);
                return long_front(&key);
            }
            let rest = (suffix.start + 16 - prefix).min(suffix.end)..suffix.end;
            let rest = if rest.is_empty() { 0 } else { front_of(&self.bytes, rest) };
            (self.front_of(suffix, shared), rest)
        });
        out.extend(fronts);
    }

    /// The length of each key, if it is the same.
    pub fn key_len(&self) -> Option<usize> {
        let header = &self.layout.header;
        (header.key_width == 0).then_some((header.prefix + header.keys) as usize)
    }

    /// The sequence number of row `at`.
    #[inline]
    pub fn seq(&self, at: usize) -> Seq {
        let width = usize::from(self.layout.header.seq_width);
        let delta = match width {
            _ if at >= self.len() => 0,
            0 => 0,
            _ => uint_at(&self.bytes, self.layout.seqs + at * width, width),
        };
        self.layout.header.min_seq.wrapping_add(delta)
    }

    /// Put or tombstone.
    #[inline]
    pub fn kind(&self, at: usize) -> EntryKind {
        if self.has_only_puts() { EntryKind::PUT } else { self.layout.kind(&self.bytes, at) }
    }

    /// Whether the values are coded, so that [`value`](Self::value) returns codes.
    #[inline]
    pub fn has_coded_values(&self) -> bool {
        self.layout.header.has_coded_values
    }

    /// Whether all rows are puts that do not expire.
    #[inline]
    pub fn has_only_puts(&self) -> bool {
        self.layout.header.has_only_puts()
    }

    /// The value of row `at`.
    #[inline]
    pub fn value(&self, at: usize) -> &[u8] {
        self.bytes.get(self.value_range(at)).unwrap_or_default()
    }

    #[inline]
    fn find(&self, key: &[u8], hash: u64) -> Option<usize> {
        let (head, rest) = key.split_at_checked(self.layout.header.prefix as usize)?;
        if !same_bytes(head, self.prefix()) {
            return None;
        }
        let window = self.window(rest);
        let pattern = u64::from(fingerprint(hash)) * 0x0101_0101_0101_0101;
        let mut first = window.start;
        while first < window.end {
            let mut same = zero_bytes(uint_at(&self.bytes, HEADER_BYTES + first, 8) ^ pattern);
            if window.end - first < 8 {
                same &= low_bytes(window.end - first); // The bytes after it are not fingerprints.
            }
            while same != 0 {
                let at = first + same.trailing_zeros() as usize / 8;
                let suffix = self.suffix(at);
                if suffix.len() == rest.len() && same_bytes(suffix, rest) {
                    return Some(at);
                }
                same &= same - 1;
            }
            first += 8;
        }
        None
    }

    /// At most [`FINGERPRINTS_MAX`] rows, including the one with this suffix, if any.
    #[inline]
    fn window(&self, suffix: &[u8]) -> Range<usize> {
        let mut window = 0..self.len();
        while window.len() > FINGERPRINTS_MAX {
            let middle = window.start + window.len() / 2;
            if self.suffix(middle) <= suffix { window.start = middle } else { window.end = middle }
        }
        window
    }

    /// Number of rows before `key`, and, if `inclusive`, at it.
    pub fn count_before(&self, key: &[u8], inclusive: bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let order = self.key(middle).cmp_bytes(key);
            if order.is_lt() || inclusive && order.is_eq() { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The fingerprint of row `at`.
    pub fn fingerprint(&self, at: usize) -> u8 {
        self.bytes.get(HEADER_BYTES + at).copied().unwrap_or_default()
    }

    /// Whether the writer would have produced these bytes for these rows, with strictly increasing keys.
    /// Checks the fingerprints if the hasher is known. `builder` must be empty, and is empty again
    /// afterwards; the other buffers are for reuse.
    pub fn is_as_written(
        &self,
        hasher: Option<KeyHasher>,
        builder: &mut BlockBuilder,
        rebuilt: &mut Vec<u8>,
    ) -> bool {
        let (mut key, mut before) = (Vec::new(), Vec::new());
        rebuilt.clear();
        for at in 0..self.len() {
            self.key(at).copy_into(&mut key);
            let (kind, value) = (self.kind(at), self.value(at));
            if at > 0 && key <= before || kind == EntryKind::TOMBSTONE && !value.is_empty() {
                builder.clear();
                return false;
            }
            let fingerprint = hasher.map_or(self.fingerprint(at), |hasher| fingerprint(hasher.hash(&key)));
            let shared = crate::key::common_prefix(&before, &key);
            builder.append(&key, shared, fingerprint, self.seq(at), kind, value);
            std::mem::swap(&mut key, &mut before);
        }
        builder.set_coded_values(self.has_coded_values());
        builder.finish_into(rebuilt);
        Some(rebuilt.as_slice()) == self.bytes.get(..self.layout.end)
    }

    #[inline]
    fn prefix(&self) -> &[u8] {
        self.bytes.get(self.layout.prefix..self.layout.key_ends).unwrap_or_default()
    }

    #[inline]
    fn suffix(&self, at: usize) -> &[u8] {
        self.bytes.get(self.suffix_range(at)).unwrap_or_default()
    }

    /// What the key of row `at` has after the prefix, as a part of the block.
    #[inline]
    pub fn suffix_range(&self, at: usize) -> Range<usize> {
        let Layout { header, key_ends, suffixes, .. } = self.layout;
        self.part(suffixes, key_ends, header.key_width, header.keys, at)
    }

    /// The value of row `at`, as a part of the block.
    #[inline]
    pub fn value_range(&self, at: usize) -> Range<usize> {
        let Layout { header, value_ends, values, .. } = self.layout;
        self.part(values, value_ends, header.value_width, header.values, at)
    }

    /// Part `at` of an area at `area`: each of length `len`, or with ends of `width` bytes at `ends`.
    #[inline]
    fn part(&self, area: usize, ends: usize, width: u8, len: u32, at: usize) -> Range<usize> {
        let (width, len) = (usize::from(width), len as usize);
        if at >= self.len() {
            return 0..0;
        }
        if width == 0 {
            return area + at * len..area + (at + 1) * len;
        }
        let end = |at: usize| uint_at(&self.bytes, ends + at * width, width) as usize;
        let start = if at == 0 { 0 } else { end(at - 1) };
        area + start..area + end(at)
    }
}

/// The high bit of each byte that is zero, exactly.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS)
}
