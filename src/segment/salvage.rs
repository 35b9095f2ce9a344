//! Salvage: every row of a damaged segment that can still be read.
//!
//! 1. A readable index partition gives the location of its blocks. Each block is read by itself.
//! 2. Elsewhere blocks are found without an index: the beginning of a block says where it ends, and its
//!    checksum covers its location.
//! 3. After a damaged block that no index lists, the next one may start anywhere: every offset is tried, with
//!    bounded effort.
//! 4. A data block is accepted if it equals what the writer would produce for its entries and its keys follow
//!    the previous ones. Its fingerprints are not checked: the hash key may be lost, and rows get new ones.

use super::block::{Block, Rows};
use super::block_builder::BlockBuilder;
use super::block_check::{check, check_kinds};
use super::block_ends::{BlockEnd, block_end, offsets_without_block};
use super::compress::unpack;
use super::format::{
    BlockHandle, Compression, FOOTER_BYTES, Footer, Location, MAX_BLOCK_BYTES, TRAILER_BYTES, open_block,
    parse_ranges,
};
use super::index::{Index, Indexed};
use super::properties::Properties;
use super::reader::{parse_index, ranges_handle};
use super::summary::SegmentSummary;
use super::symbols::{SYMBOLS_STORED_MAX, Symbols, parse_symbols, symbols_handle};
use crate::error::{Error, IoOp, Result};
use crate::fs::{HOLE_BYTES, Pieces, ReadFile, read_around_errors};
use crate::id::FileId;
use crate::key::{EntryKind, MAX_SEQ, Seq};
use crate::ranges::RangeTombstones;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Receives each row: key, sequence number, kind, value.
pub type OnRow<'a> = dyn FnMut(&[u8], Seq, EntryKind, &[u8]) -> Result<()> + 'a;

/// What [`salvage`] found, apart from the rows.
#[derive(Default)]
pub struct Salvaged {
    /// Where rows are missing, in key order.
    pub gaps: Vec<Gap>,
    /// The properties, if they are readable.
    pub properties: Option<Properties>,
    /// The range tombstones, if they are readable or there are none; `None` if some are or may be lost.
    pub ranges: Option<RangeTombstones>,
    /// Whether the age of the rows is unknown.
    pub has_lost_number: bool,
}

/// Unreadable data, and the keys around it.
#[derive(Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its length in bytes.
    pub bytes: u64,
    /// The last key before it; `None` at the start of the segment.
    pub after: Option<Vec<u8>>,
    /// The first key after it; `None` at the end of the segment.
    pub before: Option<Vec<u8>>,
}

/// Limit on the bytes that a fruitless search for blocks in one segment looks at.
const SEARCH_BYTES: u64 = if cfg!(fuzzing) { 64 << 20 } else { 4 << 30 };
/// The same limit for all segments of a repair together: some minutes at worst.
pub const SEARCH_BYTES_REPAIR: u64 = 16 << 30;
/// The search in a short segment may look in vain at this many times its length plus `SEARCH_BYTES_MIN`.
/// Bytes that lead to a block are free up to this many times the block. Without an index, intact segments
/// need less than 700 bytes of it, for blocks of 120 bytes to 3 MiB; noise needs a third of its length
/// (`tests/search.rs`).
const SEARCH_FACTOR: u64 = 16;
const SEARCH_BYTES_MIN: u64 = 4 << 20;
/// A block begins with at most this many zeros: an index whose base is 0, before a count.
const ZEROS_MAX: u64 = 8 + 3;
/// A search for the end of a block first covers this many bytes, then twice as many, and so on.
const FIRST_LOOK_BYTES: usize = 64 << 10;
/// From this size on, a look at the next offset reads the file again.
const READ_AGAIN_BYTES: usize = 1 << 20;

/// Passes every readable row of segment `id` to `on_row`, in key order. `known` is its manifest entry. Rows
/// whose number was only in a lost footer get the one in `known`, or else 1: they are not newer than
/// anything. The search for blocks that no index lists looks in vain at `search_bytes` at most and reduces
/// it.
///
/// # Errors
/// The errors of `on_row`; of a file whose length cannot be read; [`Error::UnsupportedVersion`] and
/// [`Error::UnknownCode`]. Damage is reported in the result.
pub fn salvage(
    file: &Arc<dyn ReadFile>,
    id: FileId,
    known: Option<&SegmentSummary>,
    search_bytes: &mut u64,
    on_row: &mut OnRow<'_>,
) -> Result<Salvaged> {
    let len = file.len()?;
    let most = len.saturating_mul(SEARCH_FACTOR).saturating_add(SEARCH_BYTES_MIN).min(SEARCH_BYTES);
    let effort = most.min(*search_bytes);
    let mut salvager = Salvager { file, id, effort, symbols: None, last_key: None };
    let tail = salvager.tail(len)?;
    let mut salvaged = Salvaged {
        gaps: Vec::new(),
        properties: tail.properties,
        ranges: tail.ranges,
        has_lost_number: false,
    };
    let number = tail.number.or(known.map(|known| known.max_seq));
    let mut partitions = salvager.partitions(tail.top.as_ref())?;
    let mut end = tail.top.as_ref().map(|top| top.area().start).or(known.map(|known| known.data_bytes));
    if tail.top.is_none() {
        let found = salvager.find(end.unwrap_or(0)..len);
        let (mut ranges, mut own) = (None, None);
        for &handle in &found {
            partitions.extend(salvager.index(handle, Indexed::Data)?.map(|index| (handle.offset, index)));
            ranges = ranges.or(salvager.ranges(handle)?);
            own = own.or(salvager.properties(handle)?);
        }
        // If every byte up to the footer belongs to a found block, there are no others. Without the last of
        // them, the properties, the end of the file need not have been a footer.
        let (from, to) = (end.unwrap_or(0), len.saturating_sub(FOOTER_BYTES as u64));
        let read_to = found.iter().fold(from, |at, block| if block.offset == at { block.end() } else { at });
        let is_none = own.as_ref().is_some_and(|own| read_to == to || own.facts.ranges == 0);
        let none = is_none.then(RangeTombstones::default);
        salvaged.properties = salvaged.properties.or(own);
        salvaged.ranges = salvaged.ranges.or(ranges).or(none);
        end = end.or_else(|| partitions.first().map(|(at, _)| *at));
    }
    let blocks =
        salvager.blocks(partitions.iter().map(|(_, partition)| partition), end.unwrap_or(len).min(len));
    *search_bytes -= effort - salvager.effort;

    let of_properties = salvaged.properties.as_ref().and_then(|own| own.symbols.clone());
    salvager.symbols = salvager.symbols_at_start(len)?.or(of_properties);
    let (mut read_to, mut key) =
        (salvager.symbols.as_deref().map_or(0, |of| symbols_handle(of).end()), Vec::new());
    for (handle, is_listed) in blocks {
        let Some(rows) = salvager.data_block(handle, is_listed)? else { continue };
        if handle.offset > read_to {
            salvaged.gaps.push(salvager.gap(handle.offset - read_to, Some(rows.key(0).to_vec())));
        }
        for at in 0..rows.len() {
            rows.key(at).copy_into(&mut key);
            let seq = match (rows.seq(at), number) {
                (0, Some(number)) => number,
                (0, None) => 1,
                (seq, _) => seq,
            };
            salvaged.has_lost_number |= rows.seq(at) == 0 && number.is_none();
            on_row(&key, seq, rows.kind(at), rows.value(at))?;
        }
        salvager.last_key = Some(key.clone());
        read_to = handle.end();
    }
    // If the end is unknown, there may have been more.
    if end.is_none_or(|end| read_to < end) {
        salvaged.gaps.push(salvager.gap(end.unwrap_or(len).saturating_sub(read_to), None));
    }
    Ok(salvaged)
}

/// The properties of segment `id`, with the number of its rows; `None` if they are damaged.
///
/// # Errors
/// A file whose length cannot be read; [`Error::UnsupportedVersion`]; [`Error::UnknownCode`].
pub fn read_properties(file: &Arc<dyn ReadFile>, id: FileId) -> Result<Option<Properties>> {
    let salvager = Salvager { file, id, effort: 0, symbols: None, last_key: None };
    Ok(salvager.tail(file.len()?)?.properties)
}

struct Salvager<'a> {
    file: &'a Arc<dyn ReadFile>,
    id: FileId,
    /// Remaining bytes to look at in vain.
    effort: u64,
    /// The symbol table of its values, if it is readable.
    symbols: Option<Arc<Symbols>>,
    last_key: Option<Vec<u8>>,
}

#[derive(Default)]
struct SurvivingTail {
    top: Option<Index>,
    properties: Option<Properties>,
    ranges: Option<RangeTombstones>,
    /// The footer's number, if it is readable.
    number: Option<Seq>,
}

impl Salvager<'_> {
    fn location(&self, offset: u64) -> Location<'_> {
        Location { path: self.file.path(), id: self.id, offset }
    }

    /// The bytes of a range, no longer than a block. Unreadable parts are zeros, which fail every checksum.
    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
        read_around_errors(&**self.file, &mut bytes, range.start);
        bytes
    }

    fn stored(&self, handle: BlockHandle) -> Vec<u8> {
        self.read(handle.offset..handle.end())
    }

    fn index(&self, handle: BlockHandle, of: Indexed) -> Result<Option<Index>> {
        unless_damaged(parse_index(self.location(handle.offset), &self.stored(handle), of))
    }

    fn properties(&self, handle: BlockHandle) -> Result<Option<Properties>> {
        let stored = self.stored(handle);
        let location = self.location(handle.offset);
        let opened = open_block(location, &stored);
        unless_damaged(opened.and_then(|(_, payload)| Properties::decode(location, payload)))
    }

    fn ranges(&self, handle: BlockHandle) -> Result<Option<RangeTombstones>> {
        unless_damaged(parse_ranges(self.location(handle.offset), &self.stored(handle)))
    }

    /// The symbol table at the start of the file, if there is one and it is readable.
    fn symbols_at_start(&self, len: u64) -> Result<Option<Arc<Symbols>>> {
        let bytes = self.read(0..len.min(SYMBOLS_STORED_MAX as u64));
        let BlockEnd::At(end) = block_end(self.id, 0, &bytes, len, &mut 0) else { return Ok(None) };
        let stored = bytes.get(..end).unwrap_or_default();
        Ok(unless_damaged(parse_symbols(self.location(0), stored))?.map(Arc::new))
    }

    /// The top index, the properties and the range tombstones, if readable.
    fn tail(&self, len: u64) -> Result<SurvivingTail> {
        let footer_at = len.saturating_sub(FOOTER_BYTES as u64);
        let bytes = self.read(footer_at..footer_at + FOOTER_BYTES as u64);
        let footer = bytes.first_chunk().map(|bytes| Footer::decode(self.location(footer_at), bytes));
        let Some(footer) = footer.map(unless_damaged).transpose()?.flatten() else {
            return Ok(SurvivingTail::default());
        };
        let properties = self.properties(footer.properties)?.map(|of| {
            let facts = of.facts.numbered(footer.number);
            Properties { facts, ..of }
        });
        let top = self.index(footer.top, Indexed::Partitions)?;
        let has_none = properties.as_ref().is_some_and(|of| of.facts.ranges == 0);
        let ranges = match top.as_ref().map(|top| ranges_handle(&footer, top)) {
            _ if has_none => Some(RangeTombstones::default()),
            Some(BlockHandle { len: 0, .. }) => Some(RangeTombstones::default()),
            Some(handle) => self.ranges(handle)?,
            None => None,
        };
        Ok(SurvivingTail { top, properties, ranges, number: Some(footer.number) })
    }

    /// The readable partitions in the top index, with their offsets.
    fn partitions(&self, top: Option<&Index>) -> Result<Vec<(u64, Index)>> {
        let handles = top.into_iter().flat_map(|top| (0..top.len()).map(|at| top.handle(at)));
        let found = handles.map(|handle| Ok((handle.offset, self.index(handle, Indexed::Data)?)));
        found.filter_map(|found| found.map(|(at, index)| Some((at, index?))).transpose()).collect()
    }

    /// All blocks before `end`, in order and without overlap, and whether an index lists them. The others
    /// were found without one.
    fn blocks<'i>(
        &mut self,
        partitions: impl Iterator<Item = &'i Index>,
        end: u64,
    ) -> Vec<(BlockHandle, bool)> {
        let named = partitions.flat_map(|partition| (0..partition.len()).map(|at| partition.handle(at)));
        let mut named: Vec<BlockHandle> = named.filter(|handle| handle.end() <= end).collect();
        named.sort_by_key(|handle| handle.offset);
        let (mut blocks, mut at) = (Vec::new(), 0);
        for handle in named {
            if handle.offset < at {
                continue;
            }
            blocks.extend(self.find(at..handle.offset).into_iter().map(|found| (found, false)));
            blocks.push((handle, true));
            at = handle.end();
        }
        blocks.extend(self.find(at..end).into_iter().map(|found| (found, false)));
        blocks
    }

    /// Finds the blocks of a range without an index. A hole in the file ends the search.
    fn find(&mut self, range: Range<u64>) -> Vec<BlockHandle> {
        let mut pieces = Pieces::new(Arc::clone(self.file), range.end).around_errors();
        let (mut found, mut at) = (Vec::new(), range.start);
        while at < range.end && self.effort > 0 {
            if let Some(len) = self.block_at(&mut pieces, at) {
                found.push(BlockHandle { offset: at, len: len as u32 });
                at += len as u64;
                continue;
            }
            let zeros = match pieces.view(at, 1).map(|bytes| bytes.first() == Some(&0)) {
                Ok(false) => 0,
                _ => pieces.zeros(at).unwrap_or(u64::MAX),
            };
            self.effort = self.effort.saturating_sub(zeros);
            if zeros > HOLE_BYTES {
                break;
            }
            at += zeros.saturating_sub(ZEROS_MAX).max(1);
            at += pieces.view(at, 1).map_or(0, |bytes| offsets_without_block(bytes) as u64);
        }
        found
    }

    /// The length of the block at `at`. Looks at more and more of the file. Charges the effort, unless it
    /// leads to a block.
    fn block_at(&mut self, pieces: &mut Pieces, at: u64) -> Option<usize> {
        let (mut look, mut effort) = (FIRST_LOOK_BYTES, 0);
        let rest = pieces.len().saturating_sub(at);
        let found = loop {
            let Ok(view) = pieces.view(at, look) else { break None };
            let bytes = view.get(..look).unwrap_or(view);
            let is_all = bytes.len() as u64 == rest || look >= MAX_BLOCK_BYTES + TRAILER_BYTES;
            match block_end(self.id, at, bytes, rest, &mut effort) {
                BlockEnd::At(len) => break Some(len),
                BlockEnd::Beyond if !is_all && effort < self.effort => {}
                _ => break None,
            }
            look = look.saturating_mul(2).min(MAX_BLOCK_BYTES + TRAILER_BYTES);
            if look >= READ_AGAIN_BYTES {
                effort += rest.min(look as u64);
            }
        };
        let free = found.map_or(0, |len| SEARCH_FACTOR * len as u64);
        self.effort = self.effort.saturating_sub(effort.saturating_sub(free));
        found
    }

    /// The rows of a data block; `None` if it is damaged or not a data block. Fails if this build cannot
    /// decompress it, or if the index lists it and a newer version wrote it.
    fn data_block(&self, handle: BlockHandle, is_listed: bool) -> Result<Option<Rows>> {
        let (stored, location) = (self.stored(handle), self.location(handle.offset));
        let opened = open_block(location, &stored);
        if let Ok((Compression::Fsst, payload)) = opened {
            if is_listed {
                check_kinds(location, payload)?;
            }
            return Ok(self.decode(payload));
        }
        let unpacked = opened.and_then(|(kind, payload)| unpack(location, kind, payload));
        if is_listed && let Ok(payload) = &unpacked {
            check_kinds(location, payload)?;
        }
        let rows = unless_damaged(unpacked)?.and_then(|payload| Some(Block::parse(payload).ok()?.rows()));
        Ok(rows.filter(|rows| self.is_next(rows)))
    }

    /// The rows of a payload with coded values, if it is a data block that follows the previous ones.
    fn decode(&self, payload: &[u8]) -> Option<Rows> {
        check(payload).ok()?;
        self.is_next(&Rows::mapped(payload)).then_some(())?;
        let decoded = self.symbols.as_deref()?.decode_block(payload).ok()?;
        Some(Block::parse(decoded).ok()?.rows())
    }

    /// Whether these are the rows of a data block that follows the previous ones.
    fn is_next<B: Deref<Target = [u8]>>(&self, rows: &Rows<B>) -> bool {
        let follows = self.last_key.as_ref().is_none_or(|last| rows.key(0).cmp_bytes(last).is_gt());
        let (mut builder, mut rebuilt) = (BlockBuilder::default(), Vec::new());
        let is_numbered = (0..rows.len()).all(|at| rows.seq(at) <= MAX_SEQ);
        follows && is_numbered && rows.is_as_written(None, &mut builder, &mut rebuilt)
    }

    fn gap(&self, bytes: u64, before: Option<Vec<u8>>) -> Gap {
        Gap { bytes, after: self.last_key.clone(), before }
    }
}

/// What is readable; `None` if it is damaged.
fn unless_damaged<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether an error means damage, rather than a file that cannot be opened or has another version.
pub fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corruption { .. } | Error::Io { op: IoOp::Read | IoOp::Map, .. })
}
