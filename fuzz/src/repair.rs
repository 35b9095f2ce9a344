//! Corrects the checksums of damaged bytes, so that the fuzzer reaches the code after the checks. `None` if
//! the bytes are too short for a file of that format.

use sidebloom::internal::FileId;
use sidebloom::internal::fuzz::segment_format::{
    self as format, BlockHandle, FOOTER_BYTES, Footer, TRAILER_BYTES, WRITES,
};
use sidebloom::internal::fuzz::{self, Decoder, Encode, crc32, digest, digest_at};

fn put(file: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    file.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

fn put_u32(file: &mut [u8], at: usize, value: u32) -> Option<()> {
    put(file, at, &value.to_le_bytes())
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Decoder::new(file.get(at..)?).u32()
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    Decoder::new(file.get(at..)?).u64()
}

/// A log: its header, and every record as delimited by its length field.
pub fn wal(file: &mut [u8]) -> Option<()> {
    put(file, 0, b"SBLMWAL\n")?;
    put_u32(file, 8, fuzz::LOG_VERSION)?;
    let (id, store) = (u64_at(file, 12)?, u64_at(file, 20)?);
    let crc = crc32(&[file.get(..36)?]);
    put_u32(file, 36, crc)?;
    let tag = crc32(&[&store.to_le_bytes(), &id.to_le_bytes()]) | 0x0303_0303;
    let mut at = 40;
    while let Some((len, head)) = payload_len_and_head(file.get(at..)?) {
        let (start, end) = (at + head, (at + head).checked_add(len)?.checked_add(1)?);
        let payload_crc = file.get(start..end).map_or(0, |payload| crc32(&[payload]));
        put_u32(file, at, tag)?;
        put_u32(file, at + 8, payload_crc)?;
        let head_crc = crc32(&[file.get(at + 12..start)?]) ^ tag;
        put_u32(file, at + 4, head_crc)?;
        at = end;
    }
    Some(())
}

/// From the head of a record at the start of `bytes`: the payload's length, and the head's.
fn payload_len_and_head(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut d = Decoder::new(bytes);
    d.take(12)?;
    let len = d.length()?;
    for _ in 0..3 {
        d.varint()?;
    }
    Some((len, d.position()))
}

/// A manifest: its header, and every edit as delimited by its length field.
pub fn manifest(file: &mut [u8]) -> Option<()> {
    put(file, 0, b"SBLMMAN\n")?;
    put_u32(file, 8, fuzz::MANIFEST_VERSION)?;
    let crc = crc32(&[file.get(..40)?]);
    put_u32(file, 40, crc)?;
    let tag = crc32(&[file.get(12..20)?]) | 0x0303_0303;
    let mut at = 44;
    while let Some(len) = u32_at(file, at + 4) {
        let payload = file.get(at + 16..at + 16 + len as usize);
        let payload_crc = payload.map_or(0, |payload| crc32(&[payload]));
        let is_whole = payload.is_some();
        put_u32(file, at, tag)?;
        put_u32(file, at + 8, payload_crc)?;
        let crc = crc32(&[file.get(at..at + 12)?]);
        if put_u32(file, at + 12, crc).is_none() || !is_whole {
            break;
        }
        at += 16 + len as usize;
    }
    Some(())
}

/// A sidecar with fields from the front of `bytes` and lines from the rest, truncated to whole lines.
pub fn sidecar(bytes: &[u8]) -> Option<Vec<u8>> {
    let (fields, rest) = bytes.split_at_checked(184)?;
    let lines = rest.as_chunks::<64>().0;
    let mut file = vec![0; 4096];
    file[..184].copy_from_slice(fields);
    file[..12].copy_from_slice(b"SBFILTER\x04\0\0\0");
    file[13] = 1;
    file[15] = 0;
    file[96..104].fill(0); // Hash 1 has a seed of one word.
    file[32..40].copy_from_slice(&(lines.len() as u64).to_le_bytes());
    file[56..64].copy_from_slice(&(4096 + 64 * lines.len() as u64).to_le_bytes());
    // The first level gets the lines that the others do not use.
    let others: u64 = (1..7).filter_map(|i| u32_at(&file, 68 + 4 * i)).map(u64::from).sum();
    if file[12] == 7 && others < lines.len() as u64 {
        put_u32(&mut file, 68, (lines.len() as u64 - others) as u32)?;
    }
    let crc = crc32(&[&file[..4092]]);
    put_u32(&mut file, 4092, crc)?;
    let seal = digest(&file);
    file.extend_from_slice(lines.as_flattened());
    for (group, lines) in lines.chunks(64).enumerate() {
        file.put_u64(digest_at(lines.as_flattened(), seal.wrapping_add(group as u64)));
    }
    Some(file)
}

/// A filter in wire format with uncompressed lines; fields and lines are taken from `bytes`.
pub fn wire(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut fields = [bytes.get(8..120)?, bytes.get(124..)?].concat();
    fields[14] = 0;
    fields[40..56].fill(0);
    let file = sidecar(&fields)?;
    let lines = &file[4096..u64_at(&file, 56)? as usize];
    let mut wire = [b"SBF-WIRE", &file[..112]].concat();
    wire.put_u32(crc32(&[&wire]));
    for block in lines.chunks(1 << 20) {
        wire.put_u32(block.len() as u32);
        wire.extend_from_slice(block);
    }
    wire.put_u64(digest(lines));
    Some(wire)
}

/// A segment: the offsets in its footer, and every block in its index. `digest` is the one in its manifest
/// and sidecar; without one, the segment gets the digest of its bytes.
pub fn segment(file: &mut Vec<u8>, digest: Option<u64>) -> Option<()> {
    let end = file.len().checked_sub(FOOTER_BYTES)?;
    let (id, number) = (FileId(u64_at(file, end)?), u64_at(file, end + 8)?);
    let (top_len, properties_len) = (u32_at(file, end + 32)?, u32_at(file, end + 36)?);
    let properties = end.checked_sub(properties_len as usize)?;
    let top = properties.checked_sub(top_len as usize)?;
    for partition in blocks(file, top, top_len as usize)? {
        for (at, len) in blocks(file, partition.0, partition.1).unwrap_or_default() {
            seal(file, id, at, len);
        }
        seal(file, id, partition.0, partition.1);
    }
    seal(file, id, top, top_len as usize)?;
    seal(file, id, properties, properties_len as usize)?;
    let digest = digest.unwrap_or_else(|| fuzz::digest(&file[..end]));
    file.truncate(end);
    let top = BlockHandle { offset: top as u64, len: top_len };
    let properties = BlockHandle { offset: properties as u64, len: properties_len };
    let number = number.min(fuzz::MAX_SEQ);
    file.extend(Footer { id, version: WRITES, number, top, properties, digest }.encode().ok()?);
    Some(())
}

/// Corrects the checksum of a block.
fn seal(file: &mut [u8], id: FileId, at: usize, len: usize) -> Option<()> {
    let crc_at = at.checked_add(len)?.checked_sub(4).filter(|&crc_at| crc_at > at)?;
    let crc = format::block_crc(id, at as u64, file.get(at..crc_at)?);
    put_u32(file, crc_at, crc)
}

/// Offset and length of each block in an index block.
fn blocks(file: &[u8], at: usize, len: usize) -> Option<Vec<(usize, usize)>> {
    let mut fields = Decoder::new(file.get(at..at.checked_add(len.checked_sub(TRAILER_BYTES)?)?)?);
    let (mut offset, count) = (fields.u64()?, fields.u32()?);
    let mut found = Vec::new();
    for _ in 0..count {
        let Some((_, rest, len)) = (|| Some((fields.length()?, fields.length()?, fields.varint()?)))() else {
            break;
        };
        found.push((offset as usize, len as usize));
        offset = offset.checked_add(len)?;
        if fields.take(rest).is_none() {
            break;
        }
    }
    Some(found)
}
