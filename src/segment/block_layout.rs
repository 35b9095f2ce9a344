//! The header of a data block, and the offsets of the areas after it. Shared by builder and reader.

use crate::codec::{Decoder, uint_at};
use crate::key::{EntryKind, Time};

/// Size of the header, in bytes. The fingerprints follow it.
pub const HEADER_BYTES: usize = 28;

/// The 8 bits of each key's hash in a data block.
#[inline]
pub fn fingerprint(hash: u64) -> u8 {
    hash as u8
}

/// The fields of the header. The byte map is in [`format`](mod@super::format).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockHeader {
    /// Number of entries.
    pub count: u32,
    /// Length of the prefix that all keys share.
    pub prefix: u32,
    /// Length of each suffix; of all suffixes together if `key_width` is not 0.
    pub keys: u32,
    /// Length of each value; of all values together if `value_width` is not 0.
    pub values: u32,
    /// Bytes of each end of a suffix; 0 if all have one length.
    pub key_width: u8,
    /// Bytes of each end of a value; 0 if all have one length.
    pub value_width: u8,
    /// Bytes of each sequence number, as the difference to the smallest; 0 if all are equal.
    pub seq_width: u8,
    /// 0 if all entries are puts that do not expire. See
    /// [`has_tombstones`](Self::has_tombstones) and [`expiry_width`](Self::expiry_width).
    pub kinds: u8,
    /// The smallest sequence number.
    pub min_seq: u64,
    /// Whether the values are [coded](super::symbols). Stored as a high bit of `value_width`.
    pub has_coded_values: bool,
}

/// The most bytes of an expiry.
pub const EXPIRY_WIDTH_MAX: u8 = Time::BYTES as u8;
/// Bytes of the earliest expiry, ahead of the others.
const FIRST_EXPIRY_BYTES: usize = 8;

/// Set in the stored `value_width` of a block with coded values.
const CODED: u8 = 0x80;

impl BlockHeader {
    /// Appends the header's bytes.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encoded());
    }

    /// The header's bytes.
    pub fn encoded(&self) -> [u8; HEADER_BYTES] {
        let value_width = self.value_width | if self.has_coded_values { CODED } else { 0 };
        let [count, prefix, keys, values] =
            [self.count, self.prefix, self.keys, self.values].map(u32::to_le_bytes);
        let widths = [self.key_width, value_width, self.seq_width, self.kinds];
        let (mut out, mut at) = ([0; HEADER_BYTES], 0);
        for field in [count, prefix, keys, values, widths] {
            out[at..at + 4].copy_from_slice(&field);
            at += 4;
        }
        out[at..].copy_from_slice(&self.min_seq.to_le_bytes());
        out
    }

    /// The code of the kinds of its entries, if only a newer version knows them.
    pub fn newer_kinds(&self) -> Option<u8> {
        (self.expiry_width() > EXPIRY_WIDTH_MAX).then_some(self.kinds)
    }

    /// Whether all entries are puts that do not expire.
    #[inline]
    pub fn has_only_puts(&self) -> bool {
        self.kinds == 0
    }

    /// The code of the kinds of entries.
    pub fn kinds_of(has_tombstones: bool, expiry_width: u8) -> u8 {
        u8::from(has_tombstones) | expiry_width << 1
    }

    /// Whether a bit of each entry marks tombstones; otherwise there are none.
    pub fn has_tombstones(&self) -> bool {
        self.kinds & 1 == 1
    }

    /// Bytes of each expiry, as one more than the difference to the earliest, or 0 for an entry without one;
    /// 0 if no entry has one. Greater than [`EXPIRY_WIDTH_MAX`]: entry kinds of a newer version.
    pub fn expiry_width(&self) -> u8 {
        self.kinds >> 1
    }

    /// Bytes of the bits that mark tombstones.
    fn tombstone_bytes(&self) -> usize {
        if self.has_tombstones() { (self.count as usize).div_ceil(8) } else { 0 }
    }

    /// Bytes of what tells the kinds of its entries.
    #[cold]
    fn kind_bytes(&self) -> usize {
        self.tombstone_bytes()
            + match self.expiry_width() {
                0 => 0,
                width => FIRST_EXPIRY_BYTES + self.count as usize * usize::from(width),
            }
    }

    /// Decodes the header at the start of a block; `None` if the block is shorter.
    #[inline]
    pub fn decode(block: &[u8]) -> Option<Self> {
        let mut fields = Decoder::new(block.first_chunk::<HEADER_BYTES>()?);
        let [count, prefix, keys, values] = [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
        let (key_width, value_width) = (fields.u8()?, fields.u8()?);
        Some(BlockHeader {
            count,
            prefix,
            keys,
            values,
            key_width,
            value_width: value_width & !CODED,
            seq_width: fields.u8()?,
            kinds: fields.u8()?,
            min_seq: fields.u64()?,
            has_coded_values: value_width & CODED != 0,
        })
    }
}

/// Where the areas of a block begin, as offsets in the block. Each ends where the next one begins.
#[derive(Debug, Clone, Copy, Default)]
pub struct Layout {
    /// The header that these follow from.
    pub header: BlockHeader,
    /// The prefix of all keys, after the fingerprints.
    pub prefix: usize,
    /// The ends of the suffixes.
    pub key_ends: usize,
    /// The ends of the values.
    pub value_ends: usize,
    /// The sequence numbers.
    pub seqs: usize,
    /// The bits of the tombstones, then the earliest expiry, then that of each entry.
    pub kinds: usize,
    /// The suffixes.
    pub suffixes: usize,
    /// The values.
    pub values: usize,
    /// The end of the block.
    pub end: usize,
}

impl Layout {
    /// Adds up the areas.
    #[inline]
    pub fn new(header: BlockHeader) -> Self {
        let count = header.count as usize;
        let total = |len: u32, width: u8| len as usize * if width == 0 { count } else { 1 };
        let prefix = HEADER_BYTES + count;
        let key_ends = prefix + header.prefix as usize;
        let value_ends = key_ends + count * usize::from(header.key_width);
        let seqs = value_ends + count * usize::from(header.value_width);
        let kinds = seqs + count * usize::from(header.seq_width);
        let suffixes = if header.has_only_puts() { kinds } else { kinds + header.kind_bytes() };
        let values = suffixes + total(header.keys, header.key_width);
        let end = values + total(header.values, header.value_width);
        Layout { header, prefix, key_ends, value_ends, seqs, kinds, suffixes, values, end }
    }

    /// The kind of entry `at` of this block, which may have others than puts that do not expire.
    #[inline(never)]
    pub fn kind(&self, block: &[u8], at: usize) -> EntryKind {
        let bits = || block.get(self.kinds + at / 8).copied().unwrap_or_default();
        if self.header.has_tombstones() && bits() >> (at % 8) & 1 == 1 {
            return EntryKind::TOMBSTONE;
        }
        let width = usize::from(self.header.expiry_width());
        if width == 0 || at >= self.header.count as usize {
            return EntryKind::PUT;
        }
        let expiries = self.kinds + self.header.tombstone_bytes();
        let first = uint_at(block, expiries, FIRST_EXPIRY_BYTES);
        match uint_at(block, expiries + FIRST_EXPIRY_BYTES + at * width, width) {
            0 => EntryKind::PUT,
            after => EntryKind::put_until(Time::of_millis(first.saturating_add(after - 1))),
        }
    }
}

/// The layout of a block that was checked. It may have changed since if it is mapped; its offsets still do
/// not overflow.
#[inline]
pub fn layout_of(block: &[u8]) -> Layout {
    let header = BlockHeader::decode(block).unwrap_or_default();
    let longest = header.count.max(header.prefix).max(header.keys).max(header.values);
    if longest as usize <= block.len() { Layout::new(header) } else { Layout::default() }
}
