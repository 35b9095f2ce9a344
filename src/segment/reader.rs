//! Opening a segment, reading its blocks, and point reads.

use super::block::Block;
use super::block_check::{check, check_kinds};
use super::cache::{BlockCache, SegmentIdentity};
use super::compress::{Payload, unpack};
use super::format::{
    BlockHandle, Compression, FOOTER_BYTES, Footer, Location, MAX_BLOCK_BYTES, Parsed, TRAILER_BYTES,
    open_block, parse_ranges,
};
use super::in_place::InPlace;
use super::index::{BlockPlace, Index, Indexed};
use super::pinned_partition::PinnedPartition;
use super::properties::{Properties, StoreIdentity};
use super::read_counters::ReadCounters;
use super::summary::SegmentSummary;
use super::symbols::Symbols;
use crate::error::Result;
use crate::fs::{Fs, ReadFile};
use crate::id::FileId;
use crate::key::{Entry, Seq};
use crate::ranges::RangeTombstones;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

/// Largest buffer that a thread keeps for its next read. The memory of a huge value is freed.
const STORED_BYTES: usize = 256 << 10;

thread_local!(static STORED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) });

/// An open segment. Its top index and some of its index partitions are in memory, everything else in the file
/// and the block cache.
pub struct Segment {
    pub(super) file: Arc<dyn ReadFile>,
    pub(super) tail: SegmentTail,
    pub(super) top: Index,
    /// Memory of the top index and of the list of its partitions.
    top_bytes: usize,
    /// The partitions of `top` read so far, as far as the cache lets them be pinned.
    partitions: Box<[PinnedPartition]>,
    /// If its blocks are read in place.
    pub(super) in_place: Option<InPlace>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) counters: Arc<ReadCounters>,
}

/// The contents of footer and properties.
#[derive(PartialEq, Eq)]
pub struct SegmentTail {
    pub(super) footer: Footer,
    pub(super) summary: SegmentSummary,
    store: StoreIdentity,
    pub(super) compression: Compression,
    /// The symbol table of its values, if any of them is coded.
    pub(super) symbols: Option<Arc<Symbols>>,
}

impl Segment {
    /// Opens segment `id` and reads its footer, properties and top index. If `may_map`, reads the blocks of
    /// an uncompressed segment in place.
    ///
    /// # Errors
    /// [`Corruption`](crate::Error::Corruption) when one of them is damaged or the file is another segment;
    /// [`UnsupportedVersion`](crate::Error::UnsupportedVersion), [`UnknownCode`](crate::Error::UnknownCode).
    pub fn open(
        fs: &dyn Fs,
        path: &Path,
        id: FileId,
        cache: Arc<BlockCache>,
        counters: Arc<ReadCounters>,
        may_map: bool,
    ) -> Result<Self> {
        let file = fs.open(path)?;
        let (tail, top) = read_tail(&*file, id)?;
        let partitions: Box<[_]> = (0..top.len()).map(|_| PinnedPartition::default()).collect();
        let in_place = if may_map {
            InPlace::new(&*file, tail.compression, tail.symbols.clone(), top.len())
        } else {
            None
        };
        let tables = size_of_val(&*partitions) + in_place.as_ref().map_or(0, InPlace::table_bytes);
        let top_bytes = top.weight() + tables;
        cache.open(top_bytes);
        Ok(Segment { file, tail, top, top_bytes, partitions, in_place, cache, counters })
    }

    /// Its file number.
    pub fn id(&self) -> FileId {
        self.tail.summary.id
    }

    fn identity(&self) -> SegmentIdentity {
        (self.id(), self.tail.summary.digest)
    }

    /// Its bounds, counts and sizes.
    pub fn summary(&self) -> &SegmentSummary {
        &self.tail.summary
    }

    /// The store it was written for.
    pub fn store(&self) -> StoreIdentity {
        self.tail.store
    }

    /// The entry of `key`, whose hash by the store's hasher is `hash`. Reads at most one index partition and
    /// one data block from the file.
    #[inline]
    pub fn get(&self, key: &[u8], hash: u64) -> Result<Option<Entry>> {
        let number = self.top.seek(key);
        let entry = match self.partitions.get(number).map(PinnedPartition::get) {
            None => return Ok(None),
            Some(Some(partition)) => self.get_from(partition, number, key, hash)?,
            Some(None) => self.get_from(&*self.partition(number, true)?, number, key, hash)?,
        };
        Ok(entry.map(|entry| Entry { seq: self.seq_of(entry.seq), ..entry }))
    }

    /// The entry of a key in the blocks of partition `number`, with the sequence number that is stored.
    #[inline]
    fn get_from(&self, partition: &Index, number: usize, key: &[u8], hash: u64) -> Result<Option<Entry>> {
        let block = BlockPlace { partition, number, at: self.seek_block(partition, number, key)? };
        let handle = block.handle();
        if let Some(in_place) = &self.in_place {
            let location = || self.location(handle.offset);
            if let Some(entry) = in_place.get(block, location, &self.counters, key, hash) {
                return Ok(entry);
            }
        }
        let block = match self.cached_block(handle, true) {
            Some(block) => block,
            None => self.read_block(handle)?,
        };
        Ok(block.rows().get(key, hash))
    }

    /// The sequence number of a row whose block gives this one.
    #[inline]
    pub(super) fn seq_of(&self, stored: Seq) -> Seq {
        stored.wrapping_add(self.tail.footer.number) // One of the two is 0.
    }

    /// A copy of a block that is read in place; `None` if it must be read from the file.
    pub(super) fn copy_in_place(&self, block: BlockPlace<'_>) -> Option<Block> {
        let location = || self.location(block.handle().offset);
        self.in_place.as_ref()?.copy(block, location, &self.counters)
    }

    /// Starts to load a block that is read in place into the CPU's caches.
    pub(super) fn prefetch_in_place(&self, handle: BlockHandle) {
        if let Some(in_place) = &self.in_place {
            in_place.prefetch(handle);
        }
    }

    /// Whether its blocks are read in place.
    pub(super) fn reads_in_place(&self) -> bool {
        self.in_place.as_ref().is_some_and(|in_place| !in_place.has_faulted())
    }

    /// Length of its map, in bytes.
    pub fn mapped_bytes(&self) -> u64 {
        self.in_place.as_ref().map_or(0, InPlace::mapped_bytes)
    }

    /// Reads its range tombstones.
    pub fn read_ranges(&self) -> Result<RangeTombstones> {
        match self.summary().ranges {
            0 => Ok(RangeTombstones::default()),
            _ => {
                let handle = ranges_handle(&self.tail.footer, &self.top);
                self.read(handle, |stored| parse_ranges(self.location(handle.offset), stored))
            }
        }
    }

    /// Starts to read the block that [`get`](Self::get) will read, unless it is cached, or the index
    /// partition, if that is not in memory.
    pub fn will_need(&self, key: &[u8]) {
        let number = self.top.seek(key);
        let Some(pinned) = self.partitions.get(number) else { return };
        let of_partition = self.top.handle(number);
        let cached = || self.cache.index(self.identity(), of_partition.offset);
        let BlockHandle { offset, len } = match pinned.get().cloned().or_else(cached) {
            None => of_partition,
            Some(partition) => {
                let Ok(at) = self.seek_block(&partition, number, key) else { return };
                let block = BlockPlace { partition: &partition, number, at };
                let handle = block.handle();
                if self.in_place.as_ref().is_some_and(|in_place| in_place.is_verified(block))
                    || self.cache.data(self.identity(), handle.offset, false).is_some()
                {
                    return;
                }
                handle
            }
        };
        self.file.will_need(offset, u64::from(len));
    }

    /// Index partition `at`: pinned or from the cache, or read and, if `keep`, pinned or cached.
    pub(super) fn partition(&self, at: usize, keep: bool) -> Result<Arc<Index>> {
        if let Some(pinned) = self.partitions.get(at).and_then(PinnedPartition::get) {
            return Ok(Arc::clone(pinned));
        }
        let handle = self.top.handle(at);
        if let Some(index) = self.cache.index(self.identity(), handle.offset) {
            self.counters.hit();
            return Ok(index);
        }
        self.read(handle, |stored| {
            if keep {
                self.keep_partition(at, stored)
            } else {
                self.parse_partition(handle, stored).map(Arc::new)
            }
        })
    }

    /// Whether partition `at` is in memory.
    pub(super) fn has_partition(&self, at: usize) -> bool {
        self.partitions.get(at).and_then(PinnedPartition::get).is_some()
            || self.cache.index(self.identity(), self.top.handle(at).offset).is_some()
    }

    /// Pins a stored partition, or adds it to the cache once too much is pinned.
    pub(super) fn keep_partition(&self, at: usize, stored: &[u8]) -> Result<Arc<Index>> {
        let handle = self.top.handle(at);
        let index = Arc::new(self.parse_partition(handle, stored)?);
        if self.partitions.get(at).is_none_or(|pinned| !pinned.set(&self.cache, &index)) {
            self.cache.keep_index(self.identity(), handle.offset, &index);
        }
        Ok(index)
    }

    /// Checks and parses a stored index partition.
    pub(super) fn parse_partition(&self, handle: BlockHandle, stored: &[u8]) -> Result<Index> {
        let location = self.location(handle.offset);
        let index = parse_index(location, stored, Indexed::Data)?;
        if index.area().end <= self.tail.summary.data_bytes {
            Ok(index)
        } else {
            Err(location.damaged("the index partition points beyond the data blocks"))
        }
    }

    /// A data block if it is cached. `used` keeps it longer in the cache.
    #[inline(always)]
    pub(super) fn cached_block(&self, handle: BlockHandle, used: bool) -> Option<Block> {
        self.cache.data(self.identity(), handle.offset, used).inspect(|_| self.counters.hit())
    }

    /// Reads a data block from the file and caches it.
    fn read_block(&self, handle: BlockHandle) -> Result<Block> {
        let block = self.read(handle, |stored| self.decode_block(handle, stored))?;
        self.keep_block(handle, &block);
        Ok(block)
    }

    pub(super) fn keep_block(&self, handle: BlockHandle, block: &Block) {
        self.cache.keep_data(self.identity(), handle.offset, block);
    }

    /// Checks and decompresses a stored data block.
    pub(super) fn decode_block(&self, handle: BlockHandle, stored: &[u8]) -> Result<Block> {
        let (kind, payload) = open_block(self.location(handle.offset), stored)?;
        self.decode_payload(handle, kind, payload)
    }

    /// Decompresses the payload of a data block whose checksum was verified, and checks its form.
    pub(super) fn decode_payload(
        &self,
        handle: BlockHandle,
        kind: Compression,
        payload: &[u8],
    ) -> Result<Block> {
        let location = self.location(handle.offset);
        let payload = self.unpack(location, kind, payload)?;
        check_kinds(location, &payload)?;
        self.located(handle, Block::parse(payload))
    }

    /// Decompresses the payload of a data block.
    fn unpack(&self, location: Location<'_>, kind: Compression, payload: &[u8]) -> Result<Payload> {
        if kind != Compression::Fsst {
            return unpack(location, kind, payload);
        }
        check_kinds(location, payload)?;
        let symbols = self.tail.symbols.as_deref();
        let symbols = symbols.ok_or_else(|| location.damaged("coded values without a symbol table"))?;
        let decoded = check(payload).and_then(|()| symbols.decode_block(payload));
        decoded.map_err(|what| location.damaged(what))
    }

    /// Reads a stored block into the thread's buffer for `parse`, so no read allocates or zeroes a buffer.
    fn read<T>(&self, handle: BlockHandle, parse: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let mut buffer = STORED.try_with(Cell::take).unwrap_or_default();
        let len = handle.len as usize;
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let stored = buffer.get_mut(..len).unwrap_or_default();
        let parsed = self.file.read_exact_at(stored, handle.offset).and_then(|()| {
            self.counters.read(len);
            parse(stored)
        });
        if len <= STORED_BYTES {
            _ = STORED.try_with(|kept| kept.set(buffer));
        }
        parsed
    }

    pub(super) fn location(&self, offset: u64) -> Location<'_> {
        Location { path: self.file.path(), id: self.id(), offset }
    }

    pub(super) fn located<T>(&self, handle: BlockHandle, parsed: Parsed<T>) -> Result<T> {
        parsed.map_err(|what| self.location(handle.offset).damaged(what))
    }

    /// The number of the block that could hold `key`, in partition `number` of the top index.
    #[inline]
    pub(super) fn seek_block(&self, partition: &Index, number: usize, key: &[u8]) -> Result<usize> {
        let at = partition.seek(key);
        if at < partition.len() {
            Ok(at)
        } else {
            Err(self.location(self.top.handle(number).offset).damaged("the index partition ends too early"))
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.partitions.iter().for_each(|pinned| pinned.release(&self.cache));
        self.cache.close(self.top_bytes);
    }
}

/// Reads and checks footer, properties and top index of segment `id`, in two reads.
pub(super) fn read_tail(file: &dyn ReadFile, id: FileId) -> Result<(SegmentTail, Index)> {
    let location = |offset| Location { path: file.path(), id, offset };
    let file_bytes = file.len()?;
    let Some(footer_at) = file_bytes.checked_sub(FOOTER_BYTES as u64) else {
        return Err(location(0).damaged(format!("{file_bytes} bytes are too short for a segment")));
    };
    let mut footer = [0; FOOTER_BYTES];
    file.read_exact_at(&mut footer, footer_at)?;
    let footer = Footer::decode(location(footer_at), &footer)?;
    // The footer's decoder has checked that both blocks are within the file, adjacent, and no longer than a
    // writer makes them.
    let mut blocks = vec![0; (footer_at - footer.top.offset) as usize];
    file.read_exact_at(&mut blocks, footer.top.offset)?;
    let (top, properties) = blocks.split_at(footer.top.len as usize);
    let top = parse_index(location(footer.top.offset), top, Indexed::Partitions)?;
    let properties_location = location(footer.properties.offset);
    let (_, payload) = open_block(properties_location, properties)?;
    let Properties { store, compression, symbols, facts, .. } =
        Properties::decode(properties_location, payload)?;
    if footer.number > 0 && (facts.max_seq > 0 || facts.ranges > 0) {
        return Err(location(footer_at).damaged("the footer has a number for rows that have their own"));
    }
    let gap = footer.top.offset.checked_sub(top.area().end);
    let gap = gap.filter(|gap| *gap <= (MAX_BLOCK_BYTES + TRAILER_BYTES) as u64);
    if gap.is_none_or(|gap| (gap > 0) != (facts.ranges > 0)) {
        let what = "the index partitions do not end where the range tombstones or the top index start";
        return Err(location(footer.top.offset).damaged(what));
    }
    let last = top.separator(top.len() - 1);
    if *facts.largest < *last || facts.ranges == 0 && *facts.largest != *last {
        return Err(
            properties_location.damaged("the largest key differs from the last separator of the index")
        );
    }
    let summary = SegmentSummary::new(&footer, facts, top.area().start, file_bytes);
    Ok((SegmentTail { footer, summary, store, compression, symbols }, top))
}

/// Where the range tombstones are, if any: between the last partition and the top index.
pub(super) fn ranges_handle(footer: &Footer, top: &Index) -> BlockHandle {
    let offset = top.area().end;
    let len = footer.top.offset.saturating_sub(offset);
    BlockHandle { offset, len: u32::try_from(len).unwrap_or(u32::MAX) }
}

/// Checks and parses a stored index block.
pub(super) fn parse_index(location: Location<'_>, stored: &[u8], of: Indexed) -> Result<Index> {
    let (kind, payload) = open_block(location, stored)?;
    match kind {
        Compression::None => Index::parse(payload, of).map_err(|what| location.damaged(what)),
        _ => Err(location.damaged("the index block is compressed")),
    }
}
