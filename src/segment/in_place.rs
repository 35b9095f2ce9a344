//! Blocks of a segment that is uncompressed, except perhaps each value by itself, read in place: in a map of the file, without a copy or the cache.
//!
//! 1. A block is compared with its checksum once in each map, before its first row is read.
//! 2. Whoever has read from the map checks afterwards that it has not faulted. If it has, what was read does
//!    not count: from then on, blocks are read from the file, which returns the disk's error.
//! 3. Values leave as copies, and walks copy their blocks, so that a later fault turns nothing into zeros
//!    that somebody still reads.

use super::block::{Block, Rows, check};
use super::format::{BlockHandle, Compression, open_block};
use super::index::Index;
use super::reader::{Segment, SegmentTail, check_kinds};
use crate::error::Result;
use crate::fs::{Map, ReadFile, Verified};
use crate::key::Entry;
use bytes::Bytes;
use std::sync::OnceLock;

/// The map of a segment file.
pub(super) struct InPlace {
    map: Map,
    /// For each index partition, which of its blocks match their checksums in this map.
    verified: Box<[OnceLock<Verified>]>,
}

/// A data block: block `at` of index partition `number`.
#[derive(Clone, Copy)]
pub(super) struct BlockPlace<'a> {
    pub partition: &'a Index,
    pub number: usize,
    pub at: usize,
}

impl BlockPlace<'_> {
    /// Where it lies in the file.
    #[inline]
    pub fn handle(self) -> BlockHandle {
        self.partition.handle(self.at)
    }
}

impl InPlace {
    /// Maps a segment that has so many index partitions. `None` if its blocks are compressed or the file
    /// cannot be mapped.
    pub fn new(file: &dyn ReadFile, tail: &SegmentTail, partitions: usize) -> Option<Self> {
        if !tail.compression.is_in_place() {
            return None;
        }
        // SAFETY: this crate never touches the bytes of a finished segment. `Residency::Mapped` describes
        // what happens if another program does.
        let map = unsafe { file.map() }.inspect_err(|error| tracing::debug!(%error, "segment not mapped"));
        let verified = (0..partitions).map(|_| OnceLock::new()).collect();
        Some(InPlace { map: map.ok()??, verified })
    }

    /// Memory of the verified bits' table, in bytes.
    pub fn table_bytes(&self) -> usize {
        size_of_val(&*self.verified)
    }

    /// The stored bytes of a block.
    #[inline]
    fn stored(&self, handle: BlockHandle) -> Option<&[u8]> {
        let (start, end) = (usize::try_from(handle.offset).ok()?, usize::try_from(handle.end()).ok()?);
        self.map.get(start..end)
    }

    #[inline]
    fn is_verified(&self, block: BlockPlace<'_>) -> bool {
        let verified = self.verified.get(block.number).and_then(OnceLock::get);
        verified.is_some_and(|verified| verified.has(block.at))
    }

    fn set_verified(&self, block: BlockPlace<'_>) {
        if let Some(verified) = self.verified.get(block.number) {
            verified.get_or_init(|| Verified::none_of(block.partition.len())).set(block.at);
        }
    }
}

impl Segment {
    /// The entry of a key in a block, read in place. The outer `None` if the block must be read from the
    /// file.
    #[inline]
    pub(super) fn get_in_place(&self, block: BlockPlace<'_>, key: &[u8], hash: u64) -> Option<Option<Entry>> {
        let in_place = self.in_place.as_ref()?;
        let stored = in_place.stored(block.handle())?;
        Block::prefetch_front(stored);
        self.verify_in_place(in_place, block, stored)?;
        let entry = Rows::mapped(stored).get_copied(key, hash, |codes| self.decode_value(codes))?;
        (!in_place.map.has_faulted()).then_some(entry)
    }

    fn decode_value(&self, codes: &[u8]) -> Option<Bytes> {
        self.tail.symbols.as_deref()?.decode(codes, Bytes::copy_from_slice)
    }

    /// Length of its map, in bytes.
    pub fn mapped_bytes(&self) -> u64 {
        self.in_place.as_ref().map_or(0, |in_place| in_place.map.len() as u64)
    }

    /// Whether its blocks are read in place.
    pub(super) fn reads_in_place(&self) -> bool {
        self.in_place.as_ref().is_some_and(|in_place| !in_place.map.has_faulted())
    }

    /// A copy of a block in the map. `None` if the block must be read from the file.
    pub(super) fn copy_in_place(&self, block: BlockPlace<'_>) -> Option<Block> {
        let in_place = self.in_place.as_ref()?;
        let stored = in_place.stored(block.handle())?;
        self.verify_in_place(in_place, block, stored)?;
        let copy = if Rows::mapped(stored).has_coded_values() {
            Block::parse(self.tail.symbols.as_deref()?.decode_block(stored).ok()?).ok()?
        } else {
            Block::copied(stored)
        };
        (!in_place.map.has_faulted()).then_some(copy)
    }

    /// Whether a block can be read in place and was verified.
    pub(super) fn is_verified_in_place(&self, block: BlockPlace<'_>) -> bool {
        self.in_place.as_ref().is_some_and(|in_place| in_place.is_verified(block))
    }

    /// Compares a block with its checksum, unless that was done in this map. `None` if it does not match.
    #[inline]
    fn verify_in_place(&self, in_place: &InPlace, block: BlockPlace<'_>, stored: &[u8]) -> Option<()> {
        if in_place.is_verified(block) {
            self.counters.hit();
            return Some(());
        }
        // Whoever then reads the block from the file reports what is wrong with it.
        self.check_stored(block.handle(), stored).ok()?;
        if in_place.map.has_faulted() {
            return None;
        }
        self.counters.read(stored.len());
        in_place.set_verified(block);
        Some(())
    }

    #[inline(never)]
    fn check_stored(&self, handle: BlockHandle, stored: &[u8]) -> Result<()> {
        let location = self.location(handle.offset);
        let (kind, payload) = open_block(location, stored)?;
        check_kinds(location, payload)?;
        self.located(handle, check(payload))?;
        let is_coded = Rows::mapped(payload).has_coded_values();
        if is_coded != (kind == Compression::Fsst) || !kind.is_in_place() {
            return Err(location.damaged("the values of the block are not what its type says"));
        }
        Ok(())
    }
}
