//! The structure of a store's files, parsed independently of the engine, from the descriptions in each
//! `format.rs`. For sound files only.

use crate::support::Layout;
use crate::support::LogRecord;
use std::collections::BTreeMap;
use std::ops::Range;

/// A manifest's state after its last edit.
#[derive(Debug, Default)]
pub struct Manifest {
    /// Header and edits.
    pub pieces: Vec<Range<usize>>,
    /// The first and the last key of each segment.
    pub segments: BTreeMap<u64, (Vec<u8>, Vec<u8>)>,
    /// The fields that added them.
    pub added: BTreeMap<u64, Added>,
    pub log_floor: u64,
    pub last_seq: u64,
    /// The log and its synced bytes.
    pub mark: Option<(u64, u64)>,
}

/// A field that adds a segment: what comes before the numbers of its facts, and these.
#[derive(Debug, Clone)]
pub struct Added {
    pub head: Vec<u8>,
    pub numbers: Vec<u64>,
}

/// A record of a log; the header counts as one without operations.
#[derive(Debug)]
pub struct Record {
    pub bytes: Range<usize>,
    /// The sequence number of its first operation, or of the next one if it has none.
    pub first_seq: u64,
    pub count: u64,
    /// Bytes of the log already synced when it was written.
    pub synced: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The fields of an edit, from the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u8(&mut self) -> u8 {
        let byte = self.0[0];
        self.0 = &self.0[1..];
        byte
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.u8();
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let len = self.varint() as usize;
        self.take(len)
    }

    /// 0 stands for the last key.
    fn last_key(&mut self) -> Vec<u8> {
        match self.varint() {
            0 => vec![0xff; sidebloom::MAX_KEY_BYTES],
            more => self.take(more as usize - 1),
        }
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes.to_vec()
    }
}

pub fn manifest(bytes: &[u8]) -> Manifest {
    const HEADER: usize = 44;
    const HEAD: usize = 16;
    let mut found = Manifest { pieces: std::iter::once(0..HEADER).collect(), ..Manifest::default() };
    let mut at = HEADER;
    while at < bytes.len() {
        let end = at + HEAD + u32_at(bytes, at + 4);
        let mut fields = Fields(&bytes[at + HEAD..end]);
        let mut added = Vec::new();
        loop {
            match fields.u8() {
                1 => _ = found.segments.remove(&fields.varint()),
                2 => {
                    let field = fields.0;
                    let id = fields.varint();
                    fields.u8(); // level
                    fields.varint(); // format version
                    (0..8).for_each(|_| _ = fields.u8()); // digest
                    (0..2).for_each(|_| _ = fields.varint()); // lengths
                    added.push((id, (fields.bytes(), fields.last_key())));
                    let count = fields.u8();
                    let head = field[..field.len() - fields.0.len()].to_vec();
                    // Counts, sequence numbers, expiries, the end of the time bucket.
                    let numbers = (0..count).map(|_| fields.varint()).collect();
                    found.added.insert(id, Added { head, numbers });
                }
                3 => found.log_floor = fields.varint(),
                4 => _ = fields.varint(),
                5 => found.last_seq = fields.varint(),
                6 => {
                    let mark = (fields.varint(), fields.varint());
                    found.mark = found.mark.max(Some(mark));
                    fields.varint();
                }
                7 => _ = fields.varint(), // The time.
                0xff => break,
                other => panic!("field {other} in an edit"),
            }
        }
        assert!(fields.0.is_empty(), "bytes after the end of an edit");
        found.segments.extend(added);
        found.pieces.push(at..end);
        at = end;
    }
    found
}

pub fn log(bytes: &[u8]) -> Vec<Record> {
    const HEADER: usize = 40;
    let mut next = u64_at(bytes, 28);
    let mut records = vec![Record { bytes: 0..HEADER, first_seq: next, count: 0, synced: 0 }];
    while records[records.len() - 1].bytes.end < bytes.len() {
        let at = records[records.len() - 1].bytes.end;
        let record = LogRecord::of(&bytes[at..]);
        let ([_, count, first_seq, synced], end) = (record.numbers, at + record.len);
        records.push(Record { bytes: at..end, first_seq, count, synced: synced as usize });
        assert!(first_seq == next || count == 0, "a log without order");
        next = first_seq + count;
    }
    records
}

/// The blocks of a segment, and its footer's fields.
pub fn segment_pieces(bytes: &[u8], layout: &Layout) -> Vec<Range<usize>> {
    let footer = bytes.len() - 56;
    let properties = u64_at(bytes, footer + 16) as usize;
    let top = layout.rest.bytes.start;
    let parts = layout.data.iter().chain(&layout.partitions).chain(&layout.ranges);
    let blocks = parts.map(|part| part.bytes.clone());
    let fields = [0, 8, 16, 24, 32, 36, 40, 44, 52, 56];
    let fields = fields.windows(2).map(|field| footer + field[0]..footer + field[1]);
    blocks.chain([top..properties, properties..footer]).chain(fields).collect()
}

/// The fields of a sidecar's header, its lines and their checksums.
pub fn sidecar_pieces(bytes: &[u8]) -> Vec<Range<usize>> {
    const HEADER: usize = 4096;
    let fields = (0..200).step_by(8).map(|at| at..at + 8);
    let lines = (HEADER..bytes.len().max(HEADER + 1)).step_by(64).map(|at| at..(at + 64).min(bytes.len()));
    let checksum = HEADER - 4..HEADER;
    let last = bytes.len().saturating_sub(8)..bytes.len();
    fields.chain([checksum, last]).chain(lines).filter(|piece| piece.start < piece.end).collect()
}
