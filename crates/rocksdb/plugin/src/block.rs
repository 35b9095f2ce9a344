//! The filter block of an SST file.
//!
//! # Byte map
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 64 × n | lines, level after level |
//! | 64n | 4 | magic, `sbpf` |
//! | + 4 | 1 | format version, 1 |
//! | + 5 | 1 | lanes per line: a width of a parity filter |
//! | + 6 | 2 | 0 |
//! | + 8 | 28 | lines in each of the seven levels, four bytes each, little-endian like all numbers |
//! | + 36 | 8 | seed of XXH3, which hashes the keys |
//! | + 44 | 8 | XXH3 of all bytes before it, without a seed |
//!
//! - **levels**: the first has a line, and no level after an empty one has any. Their sum is n.
//! - **checksum**: RocksDB has its own, which can be turned off. This one is checked whenever a block is read
//!   into the block cache. A filter with damaged lines could deny keys that exist.
//!
//! Any other block is not a filter: every key may be in its file. Builders that failed write [`NO_FILTER`].
//!
//! Filters are probed where RocksDB puts them: its allocator decides where a block begins, so padding cannot
//! align the lines, and a copy would double the memory. Probing a line that straddles two cache lines takes a
//! little longer, a small part of RocksDB's lookup.

use sidebloom_filter::hash::digest;
use sidebloom_filter::{BuiltFilter, FilterKind, LINE_BYTES, Levels, Line, Width};

const MAGIC: [u8; 4] = *b"sbpf";
const VERSION: u8 = 1;
const VERSION_AT: usize = 4;
const WIDTH_AT: usize = 5;
const ZEROS_AT: usize = 6;
const LEVELS_AT: usize = 8;
const SEED_AT: usize = LEVELS_AT + size_of::<Levels>();
const DIGEST_AT: usize = SEED_AT + 8;

/// The size of the trailer.
pub const TRAILER_BYTES: usize = DIGEST_AT + 8;

/// A block that is not a filter.
pub const NO_FILTER: [u8; 1] = [0];

/// A filter in a block.
pub struct Block<'b> {
    pub kind: FilterKind,
    pub seed: u64,
    pub lines: &'b [Line],
}

/// The size of a filter's block.
pub fn bytes(filter: &BuiltFilter) -> usize {
    size_of_val::<[Line]>(&filter.lines) + TRAILER_BYTES
}

/// Writes a parity filter as a block. Returns the size of the block, or `None` if there is not enough room.
pub fn write(filter: &BuiltFilter, seed: u64, to: &mut [u8]) -> Option<usize> {
    let FilterKind::Parity { width, levels } = filter.kind else { return None };
    let lines = filter.lines.as_flattened();
    let (body, rest) = to.split_at_mut_checked(lines.len())?;
    let trailer: &mut [u8; TRAILER_BYTES] = rest.first_chunk_mut()?;
    body.copy_from_slice(lines);
    trailer.fill(0);
    trailer[..MAGIC.len()].copy_from_slice(&MAGIC);
    trailer[VERSION_AT] = VERSION;
    trailer[WIDTH_AT] = width.number() as u8;
    for (to, lines) in trailer[LEVELS_AT..SEED_AT].chunks_exact_mut(4).zip(levels) {
        to.copy_from_slice(&lines.to_le_bytes());
    }
    trailer[SEED_AT..DIGEST_AT].copy_from_slice(&seed.to_le_bytes());
    let (all, checked) = (lines.len() + TRAILER_BYTES, lines.len() + DIGEST_AT);
    let sum = digest(to.get(..checked)?);
    to.get_mut(checked..all)?.copy_from_slice(&sum.to_le_bytes());
    Some(all)
}

/// The filter in a block, if there is one and it is undamaged.
pub fn read(block: &[u8]) -> Option<Block<'_>> {
    let (body, trailer) = block.split_last_chunk::<TRAILER_BYTES>()?;
    if trailer[..VERSION_AT] != MAGIC
        || trailer[VERSION_AT] != VERSION
        || trailer[ZEROS_AT..LEVELS_AT] != [0; 2]
    {
        return None;
    }
    let width = Width::from_number(u32::from(trailer[WIDTH_AT]))?;
    let mut levels = Levels::default();
    for (level, bytes) in levels.iter_mut().zip(trailer[LEVELS_AT..SEED_AT].as_chunks().0) {
        *level = u32::from_le_bytes(*bytes);
    }
    let (lines, rest) = body.as_chunks::<LINE_BYTES>();
    let used = levels.iter().take_while(|&&lines| lines > 0).count();
    let sum: u64 = levels.iter().map(|&lines| u64::from(lines)).sum();
    if !rest.is_empty()
        || used == 0
        || levels.iter().skip(used).any(|&lines| lines > 0)
        || sum != lines.len() as u64
    {
        return None;
    }
    let (checked, sum) = block.split_last_chunk()?;
    let seed = u64::from_le_bytes(*trailer[SEED_AT..].first_chunk()?);
    (digest(checked) == u64::from_le_bytes(*sum)).then_some(Block {
        kind: FilterKind::Parity { width, levels },
        seed,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidebloom_filter::FilterSpec;

    fn block(keys: u64) -> Vec<u8> {
        let hashes: Vec<u64> = (0..keys).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let filter = BuiltFilter::build(FilterSpec::Parity { width: Width::Nine }, &hashes).unwrap();
        let mut block = vec![7; bytes(&filter)];
        assert_eq!(write(&filter, 42, &mut block), Some(block.len()));
        let read = read(&block).unwrap();
        assert_eq!((read.kind, read.seed, read.lines), (filter.kind, 42, &filter.lines[..]));
        assert_eq!(write(&filter, 42, &mut vec![0; block.len() - 1]), None);
        block
    }

    #[test]
    fn i6_a_block_with_one_changed_byte_or_another_length_is_no_filter() {
        for keys in [0, 1, 500] {
            let whole = block(keys);
            for at in 0..whole.len() {
                for bit in [1, 0x80] {
                    let mut damaged = whole.clone();
                    damaged[at] ^= bit;
                    assert!(read(&damaged).is_none(), "byte {at} of {}", whole.len());
                }
                assert!(read(&whole[..at]).is_none() && (at == 0 || read(&whole[at..]).is_none()));
            }
            let longer = [&whole[..], &[0; 64]].concat();
            assert!(read(&longer).is_none() && read(&[&[0; 64], &whole[..]].concat()).is_none());
        }
        assert!(read(&NO_FILTER).is_none() && read(&[]).is_none());
    }

    /// Lines without a valid structure are not a filter, even with a correct checksum.
    #[test]
    fn lines_without_a_sound_structure_are_no_filter_despite_their_checksum() {
        let whole = block(500);
        let changed = |at: usize, to: &[u8]| {
            let (mut block, trailer) = (whole.clone(), whole.len() - TRAILER_BYTES);
            block[trailer + at..][..to.len()].copy_from_slice(to);
            let end = block.len() - 8;
            let sum = digest(&block[..end]);
            block[end..].copy_from_slice(&sum.to_le_bytes());
            read(&block).is_some()
        };
        assert!(changed(SEED_AT, &[1, 2, 3]), "another seed means a filter of other keys");
        assert!(changed(WIDTH_AT, &[8]), "another width reads the lines differently");
        assert!(!changed(0, b"sbpg") && !changed(VERSION_AT, &[2]) && !changed(VERSION_AT, &[0]));
        assert!(!changed(WIDTH_AT, &[13]) && !changed(WIDTH_AT, &[0]));
        assert!(!changed(ZEROS_AT, &[1]) && !changed(ZEROS_AT + 1, &[255]));
        assert!(
            !changed(LEVELS_AT, &[0; 4]) && !changed(LEVELS_AT, &[255; 28]) && !changed(LEVELS_AT, &[0; 28])
        );
        let gap = [10u32, 0, 1, 0, 0, 0, 0].map(u32::to_le_bytes);
        assert!(!changed(LEVELS_AT, gap.as_flattened()));
    }

    /// Stored blocks must stay readable: this one may not change.
    #[test]
    fn golden_bytes_of_a_block() {
        let block = block(100);
        let trailer: Vec<String> =
            block[block.len() - TRAILER_BYTES..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            (block.len(), trailer.concat().as_str()),
            (
                180,
                "7362706601090000020000000000000000000000000000000000000000000000000000002a000000000000008491bf9275fabb71"
            )
        );
    }
}
