//! Building data blocks.

use super::block_layout::{BlockHeader, Layout};
use crate::codec::{Encode, uint_width};
use crate::key::{EntryKind, Seq, Time};

/// Collects the entries of one block: `(append* finish_into)*`.
#[derive(Default)]
pub struct BlockBuilder {
    shape: Shape,
    /// Of the block with that shape; 0 without entries.
    bytes: usize,
    fingerprints: Vec<u8>,
    /// The part of each key that differs from the previous one. The length of the common prefix is known only
    /// after the last key, and whole keys could take far more memory than the block.
    rests: Vec<u8>,
    keys: Vec<BuilderKey>,
    values: Vec<u8>,
    value_ends: Vec<u32>,
    seqs: Vec<Seq>,
    tombstones: Vec<u8>,
    /// In milliseconds; 0 for an entry without one.
    expiries: Vec<u64>,
    has_coded_values: bool,
}

struct BuilderKey {
    /// Leading bytes shared with the previous key.
    shared: usize,
    len: usize,
}

/// What decides the size of a block.
#[derive(Clone, Copy, Default)]
struct Shape {
    count: usize,
    prefix: usize,
    key_bytes: usize,
    /// Length of every key; `None` if lengths differ.
    key_len: Option<usize>,
    value_bytes: usize,
    /// Length of every value; `None` if lengths differ.
    value_len: Option<usize>,
    min_seq: Seq,
    max_seq: Seq,
    has_tombstones: bool,
    /// The earliest and the latest expiry, in milliseconds.
    expiries: Option<(u64, u64)>,
}

impl Shape {
    /// The shape with one more entry, whose key shares `shared` leading bytes with the previous one.
    #[inline]
    fn with(self, shared: usize, key_len: usize, seq: Seq, kind: EntryKind, value_len: usize) -> Self {
        let is_tombstone = kind == EntryKind::TOMBSTONE;
        if self.count == 0 {
            return Shape {
                count: 1,
                prefix: key_len,
                key_bytes: key_len,
                key_len: Some(key_len),
                value_bytes: value_len,
                value_len: Some(value_len),
                min_seq: seq,
                max_seq: seq,
                has_tombstones: is_tombstone,
                expiries: kind.expiry().map(|time| (time.millis(), time.millis())),
            };
        }
        Shape {
            count: self.count + 1,
            prefix: self.prefix.min(shared),
            key_bytes: self.key_bytes + key_len,
            key_len: self.key_len.filter(|&len| len == key_len),
            value_bytes: self.value_bytes + value_len,
            value_len: self.value_len.filter(|&len| len == value_len),
            min_seq: self.min_seq.min(seq),
            max_seq: self.max_seq.max(seq),
            has_tombstones: self.has_tombstones | is_tombstone,
            expiries: self.expiries_with(kind),
        }
    }

    #[inline]
    fn expiries_with(&self, kind: EntryKind) -> Option<(u64, u64)> {
        let Some(time) = kind.expiry() else { return self.expiries };
        let (first, last) = self.expiries.unwrap_or((time.millis(), time.millis()));
        Some((first.min(time.millis()), last.max(time.millis())))
    }

    #[inline]
    fn header(&self) -> BlockHeader {
        let array = |len: Option<usize>, total: usize| match len {
            Some(len) => (len as u32, 0),
            None => (total as u32, uint_width(total as u64) as u8),
        };
        let suffix = self.key_len.map(|len| len - self.prefix);
        let (keys, key_width) = array(suffix, self.key_bytes - self.count * self.prefix);
        let (values, value_width) = array(self.value_len, self.value_bytes);
        let expiry_width = self.expiries.map_or(0, |(first, last)| uint_width(last - first + 1) as u8);
        BlockHeader {
            count: self.count as u32,
            prefix: self.prefix as u32,
            keys,
            values,
            key_width,
            value_width,
            seq_width: uint_width(self.max_seq - self.min_seq) as u8,
            kinds: BlockHeader::kinds_of(self.has_tombstones, expiry_width),
            min_seq: self.min_seq,
            has_coded_values: false,
        }
    }

    #[inline]
    fn bytes(&self) -> usize {
        Layout::new(self.header()).end
    }
}

/// The shape of the block with one more entry, and its size: computed once, to decide whether the entry fits
/// and to add it.
pub struct Grown {
    shape: Shape,
    /// The size of the block, in bytes.
    pub bytes: usize,
}

impl BlockBuilder {
    /// The block if this entry were added. `shared` is the number of leading bytes that its key shares with
    /// the previous one.
    #[inline]
    pub fn grown(&self, key: &[u8], shared: usize, seq: Seq, kind: EntryKind, value: &[u8]) -> Grown {
        let shape = self.shape.with(shared, key.len(), seq, kind, value.len());
        Grown { shape, bytes: shape.bytes() }
    }

    /// Adds an entry with its key's [`fingerprint`](super::block_layout::fingerprint). Its key shares exactly
    /// `shared` leading bytes with the previous one.
    #[inline]
    pub fn append(
        &mut self,
        key: &[u8],
        shared: usize,
        fingerprint: u8,
        seq: Seq,
        kind: EntryKind,
        value: &[u8],
    ) {
        self.append_grown(
            self.grown(key, shared, seq, kind, value),
            key,
            shared,
            fingerprint,
            seq,
            kind,
            value,
        );
    }

    /// [`append`](Self::append) with what [`grown`](Self::grown) has returned for this entry.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "an entry, and what is known of it")]
    pub fn append_grown(
        &mut self,
        grown: Grown,
        key: &[u8],
        shared: usize,
        fingerprint: u8,
        seq: Seq,
        kind: EntryKind,
        value: &[u8],
    ) {
        let (bit, byte) = (self.shape.count % 8, self.shape.count / 8);
        (self.shape, self.bytes) = (grown.shape, grown.bytes);
        self.fingerprints.push(fingerprint);
        let shared = if self.keys.is_empty() { 0 } else { shared };
        self.rests.extend_from_slice(key.get(shared..).unwrap_or_default());
        self.keys.push(BuilderKey { shared, len: key.len() });
        self.values.extend_from_slice(value);
        self.value_ends.push(self.values.len() as u32);
        self.seqs.push(seq);
        self.expiries.push(kind.expiry().map_or(0, Time::millis));
        if bit == 0 {
            self.tombstones.push(0);
        }
        if let Some(byte) = self.tombstones.get_mut(byte) {
            *byte |= u8::from(kind == EntryKind::TOMBSTONE) << bit;
        }
    }

    /// Sets whether the values of this block and of the next ones are [coded](super::symbols).
    pub fn set_coded_values(&mut self, are_coded: bool) {
        self.has_coded_values = are_coded;
    }

    /// Whether they are.
    pub fn has_coded_values(&self) -> bool {
        self.has_coded_values
    }

    /// Number of entries so far.
    pub fn entries(&self) -> usize {
        self.shape.count
    }

    /// Size of the block so far, in bytes; 0 without entries.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    /// Bytes of keys and values in memory.
    pub fn held(&self) -> usize {
        self.rests.len() + self.values.len()
    }

    /// Appends the block to `out` and starts the next one.
    pub fn finish_into(&mut self, out: &mut Vec<u8>) {
        let has_coded_values = self.has_coded_values;
        let header = BlockHeader { has_coded_values, ..self.shape.header() };
        let prefix = self.shape.prefix;
        header.encode_into(out);
        out.append(&mut self.fingerprints);
        out.extend_from_slice(self.rests.get(..prefix).unwrap_or_default());
        if header.key_width > 0 {
            let mut end = 0;
            for key in &self.keys {
                end += key.len - prefix;
                out.put_uint(end as u64, header.key_width.into());
            }
        }
        if header.value_width > 0 {
            self.value_ends.iter().for_each(|&end| out.put_uint(end.into(), header.value_width.into()));
        }
        if header.seq_width > 0 {
            let deltas = self.seqs.iter().map(|seq| seq - header.min_seq);
            deltas.for_each(|delta| out.put_uint(delta, header.seq_width.into()));
        }
        if header.has_tombstones() {
            out.extend_from_slice(&self.tombstones);
        }
        if let Some((first, _)) = self.shape.expiries {
            out.put_u64(first);
            let after = self.expiries.iter().map(|&expiry| (expiry + 1).saturating_sub(first));
            after.for_each(|after| out.put_uint(after, header.expiry_width().into()));
        }
        let (mut whole, mut rests) = (Vec::new(), &*self.rests);
        for key in &self.keys {
            let (rest, behind) = rests.split_at(key.len - key.shared);
            whole.truncate(key.shared);
            whole.extend_from_slice(rest);
            out.extend_from_slice(whole.get(prefix..).unwrap_or_default());
            rests = behind;
        }
        out.extend_from_slice(&self.values);
        self.clear();
    }

    /// Drops the entries so far.
    pub fn clear(&mut self) {
        (self.shape, self.bytes) = (Shape::default(), 0);
        self.fingerprints.clear();
        self.rests.clear();
        self.keys.clear();
        self.values.clear();
        self.value_ends.clear();
        self.seqs.clear();
        self.tombstones.clear();
        self.expiries.clear();
    }
}
