//! Segment files, opened on first use, and the budget of open ones: the number of descriptors depends on the
//! options, not on the number of segments.
//!
//! 1. A [`SegmentFile`] opens its file on first use and keeps it open. A read of an open one takes no lock.
//! 2. Opening one beyond the budget, or beyond the memory for top indexes ([`BlockCache`]), closes others,
//!    chosen by the clock algorithm: the hand goes round the open segments and closes the first one not read
//!    since its last pass. Active readers keep their segments, so more may be open while they run.
//! 3. When the process or the system runs out of descriptors, half of the open segments are closed and the
//!    open is retried.

use super::access::Access;
use super::cache::BlockCache;
use super::cursor::SegmentCursor;
use super::kept_ranges::{KeptRanges, RangesSlot};
use super::leftovers::Leftovers;
use super::open_clock::{Clock, OpenSlot};
use super::read_counters::ReadCounters;
use super::reader::Segment;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::fs::{Fs, Process, Reclaim, with_descriptor};
use crate::id::{FileId, FileKind};
use crate::key::Entry;
use crate::ranges::RangeTombstones;
use crate::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sync::{Mutex, MutexGuard, lock, try_lock};
use std::any::Any;
use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

/// Opens the segments of a store and keeps the number of open ones within a budget.
pub struct OpenFiles {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    cache: Arc<BlockCache>,
    counters: Arc<ReadCounters>,
    budget: usize,
    may_map: bool,
    clock: Mutex<Clock>,
    process: Process,
    openings: AtomicU64,
    leftovers: Leftovers,
    ranges: KeptRanges,
}

impl OpenFiles {
    /// Opens segments in `dir` and keeps at most `budget` (1 or more) open, with a cache of `cache_bytes`. If
    /// `may_map`, uncompressed blocks are read in place.
    pub fn new(fs: Arc<dyn Fs>, dir: &Path, cache_bytes: u64, budget: usize, may_map: bool) -> Self {
        let cache = Arc::new(BlockCache::new(cache_bytes));
        OpenFiles {
            leftovers: Leftovers::new(Arc::clone(&fs), dir),
            fs,
            dir: dir.to_path_buf(),
            ranges: KeptRanges::new(Arc::clone(&cache)),
            cache,
            counters: Arc::default(),
            budget: budget.max(1),
            may_map,
            clock: Mutex::default(),
            process: Process::current(),
            openings: AtomicU64::new(0),
        }
    }

    /// The counters of all reads.
    pub fn counters(&self) -> &ReadCounters {
        &self.counters
    }

    /// How often a read opened a segment.
    pub fn openings(&self) -> u64 {
        self.openings.load(Relaxed)
    }

    /// Number of open segments, except those that only active readers still hold.
    pub fn open_now(&self) -> usize {
        let is_open =
            |slot: &Weak<OpenSlot>| slot.upgrade().is_some_and(|slot| slot.segment.load().is_some());
        self.clock().map_or(0, |clock| clock.open.iter().filter(|slot| is_open(slot)).count())
    }

    /// Bytes of the open segments whose blocks are read in place.
    pub fn mapped_bytes(&self) -> u64 {
        let Some(clock) = self.clock() else { return 0 };
        let open = clock.open.iter().filter_map(Weak::upgrade);
        open.map(|slot| slot.segment.load().as_ref().map_or(0, |segment| segment.mapped_bytes())).sum()
    }

    /// Bytes of the top indexes of open segments.
    #[cfg(test)]
    pub fn top_index_bytes(&self) -> u64 {
        self.cache.opened()
    }

    /// Bytes of the blocks in the cache.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.cached_bytes()
    }

    /// The size of the cache, in bytes.
    pub fn cache_capacity(&self) -> u64 {
        self.cache.capacity()
    }

    /// Changes the size of the cache. When this returns, what no longer fits has left memory, but for what
    /// active readers hold: blocks, range tombstones, and open segments whose indexes take more than their
    /// share.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache.set_capacity(bytes);
        self.ranges.trim();
        // Readers may open others at the same time.
        let most = self.clock().map_or(0, |clock| clock.open.len());
        for _ in 0..most {
            let Some(mut clock) = self.clock() else { return };
            if clock.open.is_empty() || !self.cache.is_overdrawn() && !self.cache.pins_too_much() {
                return;
            }
            let at = clock.vacate();
            clock.open.swap_remove(at);
        }
    }

    /// Bytes of the indexes that stay in memory.
    pub fn index_bytes(&self) -> u64 {
        self.cache.index_bytes()
    }

    /// The files to be removed.
    pub fn leftovers(&self) -> &Leftovers {
        &self.leftovers
    }

    /// Opens segment `id` outside the budget, for checks. `digest` distinguishes segments of the same number.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`] when its footer is damaged or the file is another segment.
    pub fn open_apart(&self, id: FileId, digest: u64) -> Result<Segment> {
        let path = self.dir.join(id.file_name(FileKind::Segment));
        let segment = match self.open_at(&path, id) {
            Err(missing) if is_missing(&missing) => {
                match self.open_at(&self.dir.join(id.file_name(FileKind::Obsolete)), id) {
                    Err(error) if is_missing(&error) => return Err(missing),
                    opened => opened?,
                }
            }
            opened => opened?,
        };
        if segment.summary().digest == digest {
            Ok(segment)
        } else {
            Err(Error::corruption(
                &path,
                0,
                "the segment's digest differs from the one in the manifest: it is another segment",
            ))
        }
    }

    fn open_at(&self, path: &Path, id: FileId) -> Result<Segment> {
        let (cache, counters) = (&self.cache, &self.counters);
        let open =
            || Segment::open(&*self.fs, path, id, Arc::clone(cache), Arc::clone(counters), self.may_map);
        with_descriptor(self, open)
    }

    /// `None` in a forked process whose parent held the lock at the fork: it stays locked there.
    fn clock(&self) -> Option<MutexGuard<'_, Clock>> {
        if self.process.is_current() { Some(lock(&self.clock)) } else { try_lock(&self.clock) }
    }

    /// Stores `segment` in `slot`, and closes another one if too many are open. Returns the segment to use:
    /// another thread may have stored its own first.
    fn keep(&self, slot: &Arc<OpenSlot>, segment: Arc<Segment>) -> Arc<Segment> {
        let Some(mut clock) = self.clock() else { return segment };
        if let Some(first) = slot.segment.load_full() {
            return first;
        }
        // The top index of `segment` counts already.
        while self.cache.is_overdrawn() && !clock.open.is_empty() {
            let at = clock.vacate();
            clock.open.swap_remove(at);
        }
        if clock.open.len() < self.budget {
            clock.open.push(Arc::downgrade(slot))
        } else {
            let at = clock.vacate();
            if let Some(entry) = clock.open.get_mut(at) {
                *entry = Arc::downgrade(slot);
            }
        }
        slot.used.store(true, Relaxed);
        slot.segment.store(Some(Arc::clone(&segment)));
        segment
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

impl Reclaim for OpenFiles {
    /// Closes half of the open segments, the least recently read first.
    fn close_some(&self) -> bool {
        let Some(mut clock) = self.clock() else { return false };
        let half = clock.open.len().div_ceil(2);
        for _ in 0..half {
            let at = clock.vacate();
            clock.open.swap_remove(at);
        }
        half > 0
    }
}

impl fmt::Debug for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFiles")
            .field("dir", &self.dir)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// The [`SegmentFile::gone_since`] of a live segment.
const LIVE: u64 = u64::MAX;

/// A segment of a store, open or not. Owns the segment file and its sidecar file.
pub struct SegmentFile {
    files: Arc<OpenFiles>,
    slot: Arc<OpenSlot>,
    id: FileId,
    digest: u64,
    /// The store's first version without the segment; [`LIVE`] until then, 0 if no version ever had it.
    gone_since: AtomicU64,
    /// Prevents another process from removing the store version that the file belongs to.
    held: OnceLock<Arc<dyn Any + Send + Sync>>,
    ranges: Arc<RangesSlot>,
}

impl SegmentFile {
    /// Segment `id`, without opening its file. `digest` distinguishes segments of the same number.
    pub fn new(files: Arc<OpenFiles>, id: FileId, digest: u64) -> Self {
        let (gone_since, held) = (AtomicU64::new(LIVE), OnceLock::new());
        let (slot, ranges) = (Arc::default(), Arc::default());
        SegmentFile { files, slot, id, digest, gone_since, held, ranges }
    }

    /// A segment written under an obsolete segment's name, and removed when the last holder is dropped.
    pub fn temporary(files: Arc<OpenFiles>, id: FileId, digest: u64) -> Self {
        let file = SegmentFile::new(files, id, digest);
        file.gone_since.store(0, Release);
        file
    }

    /// Removes the files when the last holder is dropped and no other process reads a version of the store
    /// before `gone_since`, the first without the segment; 0 if no version ever had it. Call it only once the
    /// manifest no longer lists the segment.
    ///
    /// Until then the file has a name that distinguishes it from a live segment ([`FileKind::Obsolete`]). The
    /// next sync of the directory makes that name durable. If a power cut before then also destroys the
    /// manifest, the obsolete segment looks live.
    pub fn mark_obsolete(&self, gone_since: u64) {
        self.gone_since.store(gone_since, Release);
        let [from, to] = [FileKind::Segment, FileKind::Obsolete].map(|kind| self.path(kind));
        if let Err(error) = self.files.fs.rename(&from, &to) {
            tracing::warn!(%error, "cannot rename an obsolete segment");
        }
    }

    /// Whether [`mark_obsolete`](Self::mark_obsolete) was called.
    pub fn is_obsolete(&self) -> bool {
        self.gone_since.load(Acquire) != LIVE
    }

    /// Keeps `version` until the last holder of this segment is dropped. Only the first call counts.
    pub fn hold(&self, version: Arc<dyn Any + Send + Sync>) {
        _ = self.held.set(version);
    }

    fn path(&self, kind: FileKind) -> PathBuf {
        self.files.dir.join(self.id.file_name(kind))
    }

    /// The open segment, for longer use: it stays open until dropped.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`] when its footer is damaged or the file is another segment.
    pub fn open(&self) -> Result<Arc<Segment>> {
        match self.slot.segment.load_full() {
            Some(segment) => {
                self.touch();
                Ok(segment)
            }
            None => self.open_now(),
        }
    }

    /// [`Segment::get`].
    pub fn get(&self, key: &[u8], hash: u64) -> Result<Option<Entry>> {
        match &*self.slot.segment.load() {
            Some(segment) => {
                self.touch();
                segment.get(key, hash)
            }
            None => self.open_now()?.get(key, hash),
        }
    }

    /// Calls `ask` with its range tombstones, which stay in memory as long as the budget allows.
    pub fn ask_ranges<T>(&self, ask: impl FnOnce(&Arc<RangeTombstones>) -> T) -> Result<T> {
        match &*self.ranges.get() {
            Some(ranges) => Ok(ask(ranges)),
            None => {
                let ranges = self.open()?.read_ranges()?;
                Ok(ask(&self.files.ranges.keep(&self.ranges, ranges)))
            }
        }
    }

    /// Its range tombstones, if they are in memory.
    pub fn ranges_in_memory(&self) -> Option<Arc<RangeTombstones>> {
        self.ranges.get().clone()
    }

    /// Sets what [`ask_ranges`](Self::ask_ranges) would read, for a newly written segment.
    pub fn keep_ranges(&self, ranges: RangeTombstones) {
        if !ranges.is_empty() {
            self.files.ranges.keep(&self.ranges, ranges);
        }
    }

    /// [`Segment::will_need`], if the segment is open.
    pub fn will_need(&self, key: &[u8]) {
        if let Some(segment) = &*self.slot.segment.load() {
            segment.will_need(key);
        }
    }

    /// [`Segment::cursor`].
    pub fn cursor(&self, direction: Direction, start: Bound<&[u8]>, access: Access) -> Result<SegmentCursor> {
        self.open()?.cursor(direction, start, access)
    }

    /// Writes only on a change, so that readers on many cores share the cache line.
    #[inline]
    fn touch(&self) {
        if !self.slot.used.load(Relaxed) {
            self.slot.used.store(true, Relaxed);
        }
    }

    #[cold]
    fn open_now(&self) -> Result<Arc<Segment>> {
        let segment = self.files.open_apart(self.id, self.digest)?;
        self.files.openings.fetch_add(1, Relaxed);
        Ok(self.files.keep(&self.slot, Arc::new(segment)))
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        self.files.ranges.release(&self.ranges);
        let gone_since = self.gone_since.load(Acquire);
        if gone_since != LIVE {
            self.files.leftovers.remove(self.id, gone_since);
        }
    }
}
