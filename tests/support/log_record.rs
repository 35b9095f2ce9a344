//! The records of a log, parsed and built independently of the engine, from the format's description alone
//! (`src/wal/format.rs`).

/// The tag and the checksums of head and payload come before the numbers.
const NUMBERS: usize = 12;
const END: u8 = 0x7f;

/// A record of a log.
#[derive(Debug, Clone)]
pub struct LogRecord {
    pub tag: [u8; 4],
    /// In its head: payload length, operations, sequence number of the first one, synced length.
    pub numbers: [u64; 4],
    /// The batch, without the end.
    pub payload: Vec<u8>,
    /// Length of the whole record.
    pub len: usize,
}

impl LogRecord {
    /// The record at the start of `bytes`.
    pub fn of(bytes: &[u8]) -> LogRecord {
        let mut at = NUMBERS;
        let numbers = std::array::from_fn(|_| varint(bytes, &mut at));
        let end = at + numbers[0] as usize;
        let tag = bytes[..4].try_into().unwrap();
        LogRecord { tag, numbers, payload: bytes[at..end].to_vec(), len: end + 1 }
    }

    /// The bytes of a record with these numbers and this payload, which need not fit each other.
    pub fn encode(&self) -> Vec<u8> {
        let mut numbers = Vec::new();
        self.numbers.iter().for_each(|&number| put_varint(&mut numbers, number));
        let payload = [&self.payload[..], &[END]].concat();
        let head_crc = crc32fast::hash(&numbers) ^ u32::from_le_bytes(self.tag);
        let payload_crc = crc32fast::hash(&payload);
        let checksums = [head_crc, payload_crc].map(u32::to_le_bytes).concat();
        [&self.tag[..], &checksums, &numbers, &payload].concat()
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[*at];
        value |= u64::from(byte & 0x7f) << shift;
        *at += 1;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

/// Appends a number as LEB128.
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
