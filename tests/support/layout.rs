//! The blocks of a segment and the keys that they cover, parsed independently of the engine, from the
//! format's description alone (`src/segment/format.rs`). The rows of compressed blocks are left out.

use std::ops::Range;

const FOOTER_BYTES: usize = 56;
/// Size of the type and checksum after each block.
const TRAILER_BYTES: usize = 5;

/// A part of a segment that is read as a whole, and the keys whose answers need it.
#[derive(Debug, Clone)]
pub struct Part {
    pub bytes: Range<usize>,
    /// The keys between the first (exclusive) and the second (inclusive). Without a first one: from the
    /// segment's first key on.
    pub after: Option<Vec<u8>>,
    pub up_to: Vec<u8>,
    /// The keys in a data block that is not compressed, with their sequence numbers.
    pub rows: Vec<(Vec<u8>, u64)>,
}

/// The parts of a segment: its data blocks, its index partitions, its range tombstones, and the rest.
#[derive(Debug, Clone)]
pub struct Layout {
    pub data: Vec<Part>,
    pub partitions: Vec<Part>,
    /// The range tombstones. Every key between their first and their last may need them.
    pub ranges: Option<Part>,
    /// The copy of the symbol table at the start of the file. No lookup needs it.
    pub symbols: Option<Part>,
    /// Every lookup in the segment needs this.
    pub rest: Part,
}

impl Layout {
    pub fn of(segment: &[u8]) -> Layout {
        let footer = segment.len() - FOOTER_BYTES;
        let (number, properties) = (u64_at(segment, footer + 8), u64_at(segment, footer + 16) as usize);
        let top = properties - u32_at(segment, footer + 32);
        let partitions = index(&segment[top..properties], None);
        let mut data = Vec::new();
        for partition in &partitions {
            data.extend(index(&segment[partition.bytes.clone()], partition.after.clone()));
        }
        for block in &mut data {
            block.rows = rows(&segment[block.bytes.clone()]);
            block.rows.iter_mut().for_each(|(_, seq)| *seq += number);
        }
        let up_to = data.last().unwrap().up_to.clone();
        let (start, behind) = (data[0].bytes.start, partitions.last().unwrap().bytes.end);
        Layout {
            data,
            partitions,
            symbols: (start > 0).then(|| Part {
                bytes: 0..start,
                after: Some(vec![0xff; (64 << 10) + 1]), // Greater than any key.
                up_to: Vec::new(),
                rows: Vec::new(),
            }),
            ranges: (behind < top).then(|| ranges(segment, behind..top)),
            rest: Part { bytes: top..segment.len(), after: None, up_to, rows: Vec::new() },
        }
    }

    /// The part that includes the byte.
    pub fn part_at(&self, at: usize) -> &Part {
        let parts = self
            .data
            .iter()
            .chain(&self.partitions)
            .chain(&self.ranges)
            .chain(&self.symbols)
            .chain([&self.rest]);
        parts.into_iter().find(|part| part.bytes.contains(&at)).unwrap()
    }

    /// Whether the segment's answer for a key depends on this part.
    pub fn is_asked(&self, part: &Part, key: &[u8]) -> bool {
        let smallest = self.data[0].rows[0].0.as_slice();
        key >= smallest
            && part.after.as_deref().is_none_or(|after| key > after)
            && key <= part.up_to.as_slice()
    }

    pub fn rows(&self) -> impl Iterator<Item = &(Vec<u8>, u64)> {
        self.data.iter().flat_map(|block| &block.rows)
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Decodes a varint and removes it from the front.
fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Decodes a key that shares `shared` bytes with the previous one, and removes it from the front.
fn complete(key: &mut Vec<u8>, shared: usize, rest: usize, bytes: &mut &[u8]) {
    key.truncate(shared);
    key.extend_from_slice(&bytes[..rest]);
    *bytes = &bytes[rest..];
}

/// The parts that an index block lists.
fn index(block: &[u8], mut after: Option<Vec<u8>>) -> Vec<Part> {
    let (mut at, count) = (u64_at(block, 0) as usize, u32_at(block, 8));
    let (mut fields, mut key, mut parts) = (&block[12..], Vec::new(), Vec::new());
    for _ in 0..count {
        let [shared, rest, len] = std::array::from_fn(|_| varint(&mut fields) as usize);
        complete(&mut key, shared, rest, &mut fields);
        parts.push(Part {
            bytes: at..at + len,
            after: after.replace(key.clone()),
            up_to: key.clone(),
            rows: Vec::new(),
        });
        at += len;
    }
    parts
}

/// The block of range tombstones, which deletes keys from its first one up to its last one, or to the end.
fn ranges(segment: &[u8], bytes: Range<usize>) -> Part {
    let mut fields = &segment[bytes.start + 8..bytes.end - TRAILER_BYTES];
    let mut steps = Vec::new();
    for _ in 0..varint(&mut fields) {
        let len = varint(&mut fields) as usize;
        let (from, rest) = fields.split_at(len);
        fields = rest;
        steps.push((from.to_vec(), varint(&mut fields)));
    }
    let (first, (last, seq)) = (steps[0].0.clone(), steps.pop().unwrap());
    let up_to = if seq == 0 { last } else { vec![0xff; 64 << 10] };
    // The bound is exclusive, and no key is just before the first one. A slightly smaller one does no harm.
    let after = first.split_last().map(|(_, shorter)| shorter.to_vec());
    Part { bytes, after, up_to, rows: Vec::new() }
}

fn rows(block: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let (payload, trailer) = block.split_at(block.len() - TRAILER_BYTES);
    let block = match trailer[0] {
        0 | 3 => payload, // The keys of coded values are as they are.
        0x80 | 0x83 => {
            let (front, zeros) = payload.split_last_chunk::<2>().unwrap();
            &front[..front.len() - usize::from(u16::from_le_bytes(*zeros))]
        }
        _ => return Vec::new(),
    };
    let [count, prefix, keys, values] = [0, 4, 8, 12].map(|at| u32_at(block, at));
    let [key_width, value_width, seq_width, kinds] = [16, 17, 18, 19].map(|at| usize::from(block[at]));
    let value_width = value_width & 0x7f; // Without the bit of coded values.
    let prefix_at = 28 + count;
    let key_ends = prefix_at + prefix;
    let value_ends = key_ends + count * key_width;
    let seqs = value_ends + count * value_width;
    let expiries = match kinds >> 1 {
        0 => 0,
        width => 8 + count * width,
    };
    let suffixes = seqs + count * seq_width + (kinds & 1) * count.div_ceil(8) + expiries;
    let all = |one: usize, width: usize| if width == 0 { one * count } else { one };
    assert_eq!(suffixes + all(keys, key_width) + all(values, value_width), block.len());
    let uint = |at: usize, width: usize| -> u64 {
        block[at..at + width].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let end = |row: usize| match key_width {
        0 => row * keys,
        _ if row == 0 => 0,
        width => uint(key_ends + (row - 1) * width, width) as usize,
    };
    let key = |row: usize| {
        [&block[prefix_at..key_ends], &block[suffixes + end(row)..suffixes + end(row + 1)]].concat()
    };
    let seq = |row: usize| u64_at(block, 20) + uint(seqs + row * seq_width, seq_width);
    (0..count).map(|row| (key(row), seq(row))).collect()
}
