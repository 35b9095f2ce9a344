//! The wire form of a filter: compressed, in one pass, with constant memory in addition to the filter.
//!
//! | offset | bytes | field | meaning | invalid when |
//! |---|---|---|---|---|
//! | 0 | 8 | magic | `SBF-WIRE` | anything else: not a filter |
//! | 8 | 112 | header | the first 112 bytes of the header page ([`super::header`]); the rest of the page is zero | as there; or bound to a segment |
//! | 120 | 4 | checksum | CRC-32 of the 120 bytes before it | does not match |
//! | 124 | | blocks | one for each MiB of lines and one for the rest | |
//! | | 8 | digest | of all lines | does not match |
//!
//! The stream of a small filter is different and has its own magic ([`super::small`]).
//!
//! A block is its length on the wire (4 bytes), then that many bytes. If the length equals that of the lines,
//! the bytes are the lines. If it is less, they are rANS-coded, order 0 (`rans.rs`). A greater one is
//! invalid.
//!
//! Compression pays off for filters that are far from half full: Bloom filters with fewer positions and more
//! bits than the optimum for their memory (Mitzenmacher, "Compressed Bloom Filters", 2002), filters that are
//! still filling up, and counting filters. A full Bloom filter with the best `k` and a parity filter are
//! random bits, which cannot be compressed. Measured, in per cent of 1 MiB; about 100 MB/s in both
//! directions:
//!
//! | fill | entropy | here | zstd -3 | zstd -19 | lz4 |
//! |---|---|---|---|---|---|
//! | 50 % | 100.0 | 100.0 | 100.0 | 100.0 | 100.4 |
//! | 30 % | 88.2 | 88.2 | 88.7 | 88.7 | 100.4 |
//! | 20 % | 72.2 | 72.3 | 73.8 | 73.6 | 100.4 |
//! | 10 % | 47.0 | 47.1 | 54.6 | 48.6 | 87.4 |
//! | 5 % | 28.7 | 28.8 | 37.9 | 31.1 | 60.1 |
//! | 1 % | 8.2 | 8.3 | 14.5 | 10.5 | 26.4 |
//! | 0.1 % | 1.3 | 1.4 | 2.5 | 2.1 | 5.2 |
//! | counting, full | – | 40.5 | 48.3 | 41.2 | 84.7 |
//!
//! A general-purpose compressor would gain nothing.

use super::header::{BOUND_AT, FIELDS_BYTES, HEADER_BYTES, Header, READS};
use super::input::{Input, STREAM};
use super::parts::{Parts, filter_of, parts_of};
use super::{rans, small};
use crate::codec::{Encode, crc32};
use crate::error::{Error, Result};
use crate::hash::Digest;
use crate::{AnyFilter, LINE_BYTES, Line, Lines};
use std::io::{Read, Write};

const MAGIC: [u8; 8] = *b"SBF-WIRE";
const START_BYTES: usize = MAGIC.len() + FIELDS_BYTES;
/// Versions that had other fields, and where each has its checksum.
const EARLIER: [(u32, usize); 2] = [(1, MAGIC.len() + 96), (2, MAGIC.len() + 104)];
const BLOCK_LINES: usize = (1 << 20) / LINE_BYTES;
/// The advice in errors about a damaged stream.
const REMEDY: &str = "; send it again";

/// Writes the wire form of a filter. Returns its length in bytes.
///
/// # Errors
/// [`Error::Io`] if `output` fails; [`Error::Unencodable`].
pub fn send_filter(filter: &AnyFilter, output: &mut impl Write) -> Result<u64> {
    let mut sent = 0;
    let mut send = |bytes: &[u8]| {
        sent += bytes.len() as u64;
        output.write_all(bytes).map_err(|e| Error::io("write", STREAM, e))
    };
    let (header, parts) = match parts_of(filter) {
        Parts::Lines(header, parts) => (header, parts),
        Parts::Small(bytes) => {
            send(&bytes)?;
            return Ok(sent);
        }
    };
    let mut start = MAGIC.to_vec();
    start.extend(header.encode()?.iter().take(FIELDS_BYTES));
    start.put_u32(crc32(&[&start]));
    send(&start)?;

    let mut digest = Digest::default();
    let mut lines = parts.into_iter().flatten();
    let mut block: Vec<Line> = Vec::with_capacity(BLOCK_LINES);
    loop {
        block.clear();
        block.extend(lines.by_ref().take(BLOCK_LINES));
        let plain = block.as_flattened();
        if plain.is_empty() {
            break;
        }
        digest.update(plain);
        let coded = rans::encode(plain);
        let on_wire = coded.as_deref().unwrap_or(plain);
        send(&(on_wire.len() as u32).to_le_bytes())?;
        send(on_wire)?;
    }
    send(&digest.finish().to_le_bytes())?;
    Ok(sent)
}

/// Reads a filter in its wire form, and nothing beyond it.
///
/// # Errors
/// [`Error::Damaged`] for a damaged, truncated or foreign stream; [`Error::UnsupportedVersion`] or
/// [`Error::UnknownCode`] for one of another version; [`Error::TooLarge`] for a filter of more than
/// `max_bytes` of memory, before any of it is allocated; [`Error::Io`] if `input` fails.
pub fn receive_filter(input: &mut impl Read, max_bytes: u64) -> Result<AnyFilter> {
    receive(&mut Input { input, at: 0 }, max_bytes).map_err(|error| match error {
        Error::Damaged { offset, what } => Error::damaged(offset, what + REMEDY),
        other => other,
    })
}

fn receive<R: Read>(input: &mut Input<'_, R>, max_bytes: u64) -> Result<AnyFilter> {
    let mut start = [0; START_BYTES + 4];
    let (magic, rest) = start.split_at_mut(small::MAGIC.len());
    input.fill(magic)?;
    if small::is_small(magic) {
        return small::receive(input, max_bytes).map(AnyFilter::Small);
    }
    if !MAGIC.starts_with(magic) {
        return Err(not_a_filter());
    }
    input.fill(rest)?;
    let (checked, crc) = start.split_at(START_BYTES);
    let header = read_header(checked, crc)?;
    let bytes = header.lines.saturating_mul(LINE_BYTES as u64);
    if bytes > max_bytes {
        return Err(Error::TooLarge { bytes, max: max_bytes });
    }
    // Grows with the data that arrives: a header alone must not cause a large allocation.
    let mut lines = Lines::default();
    let mut digest = Digest::default();
    while (lines.len() as u64) < header.lines {
        let here = BLOCK_LINES.min((header.lines - lines.len() as u64) as usize);
        let mut block = vec![[0; LINE_BYTES]; here];
        input.block(block.as_flattened_mut())?;
        digest.update(block.as_flattened());
        lines.extend_from_slice(&block);
    }
    let at = input.at;
    let mut stored = [0; 8];
    input.fill(&mut stored)?;
    if digest.finish().to_le_bytes() != stored {
        return Err(Error::damaged(at, "line digest mismatch"));
    }
    filter_of(&header, lines).map_err(in_stream)
}

fn not_a_filter() -> Error {
    Error::damaged(0, "not a filter")
}

/// An error of the header page, at its offset in the stream.
fn in_stream(error: Error) -> Error {
    match error {
        Error::Damaged { offset, what } => Error::damaged(offset + MAGIC.len() as u64, what),
        Error::UnknownCode { offset, what } => Error::unknown_code(offset + MAGIC.len() as u64, what),
        other => other,
    }
}

fn read_header(checked: &[u8], crc: &[u8]) -> Result<Header> {
    if !checked.starts_with(&MAGIC) {
        return Err(not_a_filter());
    }
    if crc != crc32(&[checked]).to_le_bytes() {
        return Err(match earlier_version(checked) {
            Some(found) => Error::UnsupportedVersion { found, supported: READS },
            None => Error::damaged(START_BYTES as u64, "header checksum mismatch"),
        });
    }
    let mut page = checked.get(MAGIC.len()..).unwrap_or_default().to_vec();
    page.resize(HEADER_BYTES - 4, 0);
    page.put_u32(crc32(&[&page]));
    let header = Header::decode(&page).map_err(in_stream)?;
    match header.binding {
        None => Ok(header),
        Some(_) => Err(Error::damaged((MAGIC.len() + BOUND_AT) as u64, "the filter belongs to a segment")),
    }
}

/// The version of an earlier version's stream, confirmed by the checksum at its place.
fn earlier_version(start: &[u8]) -> Option<u32> {
    let is_intact = |&(_, crc_at): &(u32, usize)| {
        let (checked, rest) = start.split_at(crc_at);
        rest.starts_with(&crc32(&[checked]).to_le_bytes())
    };
    EARLIER.into_iter().find(is_intact).map(|(version, _)| version)
}

impl<R: Read> Input<'_, R> {
    /// Reads one block into its lines.
    fn block(&mut self, plain: &mut [u8]) -> Result<()> {
        let at = self.at;
        let mut length = [0; 4];
        self.fill(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length == plain.len() {
            return self.fill(plain);
        }
        if length > plain.len() {
            return Err(Error::damaged(at, format!("invalid block length {length}")));
        }
        let mut coded = vec![0; length];
        self.fill(&mut coded)?;
        rans::decode(&coded, plain).ok_or_else(|| Error::damaged(at, "invalid coded block"))
    }
}
