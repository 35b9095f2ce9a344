//! Blocks read in place: in a map of the file, without a copy or the cache. Their segment is uncompressed,
//! except perhaps each value by itself.
//!
//! 1. A block is compared with its checksum once in each map, before its first row is read.
//! 2. Whoever has read from the map checks afterwards that it has not faulted. If it has, what was read does
//!    not count: from then on, blocks are read from the file, which returns the disk's error.
//! 3. Values leave as copies, and walks copy their blocks, so that a later fault turns nothing into zeros
//!    that somebody still reads.

use super::block::{Block, Rows};
use super::block_check::{check, check_kinds};
use super::format::{BlockHandle, Compression, Location, open_block};
use super::index::BlockPlace;
use super::read_counters::ReadCounters;
use super::symbols::Symbols;
use crate::error::Result;
use crate::fs::{Map, ReadFile, Verified};
use crate::key::Entry;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// The map of a segment file.
pub(super) struct InPlace {
    map: Map,
    /// The symbol table of coded values.
    symbols: Option<Arc<Symbols>>,
    /// For each index partition, which of its blocks match their checksums in this map.
    verified: Box<[OnceLock<Verified>]>,
}

impl InPlace {
    /// Maps a segment that has so many index partitions. `None` if its blocks are compressed or the file
    /// cannot be mapped.
    pub fn new(
        file: &dyn ReadFile,
        compression: Compression,
        symbols: Option<Arc<Symbols>>,
        partitions: usize,
    ) -> Option<Self> {
        if !compression.is_in_place() {
            return None;
        }
        // SAFETY: this crate never touches the bytes of a finished segment. `Residency::Mapped` describes
        // what happens if another program does.
        let map = unsafe { file.map() }.inspect_err(|error| tracing::debug!(%error, "segment not mapped"));
        let verified = (0..partitions).map(|_| OnceLock::new()).collect();
        Some(InPlace { map: map.ok()??, symbols, verified })
    }

    /// Length of the map, in bytes.
    pub fn mapped_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Memory of the verified bits' table, in bytes.
    pub fn table_bytes(&self) -> usize {
        size_of_val(&*self.verified)
    }

    /// Whether an access to the map has faulted, so that nothing is read in place any more.
    pub fn has_faulted(&self) -> bool {
        self.map.has_faulted()
    }

    /// The entry of a key in a block, whose location is needed if it was not verified. The outer `None` if
    /// the block must be read from the file.
    #[inline]
    pub fn get<'l>(
        &self,
        block: BlockPlace<'_>,
        location: impl FnOnce() -> Location<'l>,
        counters: &ReadCounters,
        key: &[u8],
        hash: u64,
    ) -> Option<Option<Entry>> {
        let stored = self.stored(block.handle())?;
        Block::prefetch_front(stored);
        self.verify(block, location, counters, stored)?;
        let decode = |codes| self.symbols.as_deref()?.decode(stored, codes, Bytes::copy_from_slice);
        let entry = Rows::mapped(stored).get_copied(key, hash, decode)?;
        (!self.has_faulted()).then_some(entry)
    }

    /// A copy of a block, with decoded values; see [`get`](Self::get). `None` if the block must be read from
    /// the file.
    pub fn copy<'l>(
        &self,
        block: BlockPlace<'_>,
        location: impl FnOnce() -> Location<'l>,
        counters: &ReadCounters,
    ) -> Option<Block> {
        let stored = self.stored(block.handle())?;
        self.verify(block, location, counters, stored)?;
        let copy = if Rows::mapped(stored).has_coded_values() {
            Block::decoded(self.symbols.as_deref()?.decode_block(stored).ok()?)
        } else {
            Block::copied(stored)
        };
        (!self.has_faulted()).then_some(copy)
    }

    /// The [rows without their values](Rows::without_values) of a block; see [`get`](Self::get). `None` if
    /// the block must be read from the file.
    pub fn copy_keys<'l>(
        &self,
        block: BlockPlace<'_>,
        location: impl FnOnce() -> Location<'l>,
        counters: &ReadCounters,
    ) -> Option<Rows> {
        let stored = self.stored(block.handle())?;
        self.verify(block, location, counters, stored)?;
        let rows = Rows::without_values(stored);
        (!self.has_faulted()).then_some(rows)
    }

    /// Starts to load a block into the CPU's caches.
    pub fn prefetch(&self, handle: BlockHandle) {
        Block::prefetch_bytes(self.stored(handle).unwrap_or_default());
    }

    /// Whether a block was verified.
    #[inline]
    pub fn is_verified(&self, block: BlockPlace<'_>) -> bool {
        let verified = self.verified.get(block.number).and_then(OnceLock::get);
        verified.is_some_and(|verified| verified.has(block.at))
    }

    /// The stored bytes of a block.
    #[inline]
    fn stored(&self, handle: BlockHandle) -> Option<&[u8]> {
        let (start, end) = (usize::try_from(handle.offset).ok()?, usize::try_from(handle.end()).ok()?);
        self.map.get(start..end)
    }

    /// Compares a block with its checksum, unless that was done in this map. `None` if it does not match.
    #[inline]
    fn verify<'l>(
        &self,
        block: BlockPlace<'_>,
        location: impl FnOnce() -> Location<'l>,
        counters: &ReadCounters,
        stored: &[u8],
    ) -> Option<()> {
        if self.is_verified(block) {
            counters.hit();
            return Some(());
        }
        // Whoever then reads the block from the file reports what is wrong with it.
        check_stored(location(), stored).ok()?;
        if self.has_faulted() {
            return None;
        }
        counters.read(stored.len());
        if let Some(verified) = self.verified.get(block.number) {
            verified.get_or_init(|| Verified::none_of(block.partition.len())).set(block.at);
        }
        Some(())
    }
}

#[inline(never)]
fn check_stored(location: Location<'_>, stored: &[u8]) -> Result<()> {
    let (kind, payload) = open_block(location, stored)?;
    check_kinds(location, payload)?;
    check(payload).map_err(|what| location.damaged(what))?;
    let is_coded = Rows::mapped(payload).has_coded_values();
    if is_coded != (kind == Compression::Fsst) || !kind.is_in_place() {
        return Err(location.damaged("the values of the block are not what its type says"));
    }
    Ok(())
}
