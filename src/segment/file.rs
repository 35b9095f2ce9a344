//! The files of a store's segments, opened when they are read, and the budget of open ones: a store needs as many descriptors as its
//! options say, however many segments it has.
//!
//! 1. A [`SegmentFile`] opens its file on first use and keeps it open. A read of an open one takes no lock.
//! 2. Whoever opens one beyond the budget closes another: the hand of a clock goes round the open ones and closes the first that
//!    was not read since it last came by. Readers at work keep what they have, so that for as long as they live more may be open.
//! 3. When the process or the system is out of descriptors, half of the open segments are closed and the opening is tried once more.

use super::access::{Access, Direction};
use super::cache::{BlockCache, ReadCounters};
use super::cursor::SegmentCursor;
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::fs::{Fs, Reclaim, with_descriptor};
use crate::id::{FileId, FileKind};
use crate::key::Entry;
use arc_swap::ArcSwapOption;
use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Opens the segments of one store and keeps the number of open ones within a budget.
pub struct OpenFiles {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    cache: Arc<BlockCache>,
    counters: Arc<ReadCounters>,
    budget: usize,
    clock: Mutex<Clock>,
    openings: AtomicU64,
}

/// The open segments, in a ring. A segment that is gone leaves its place to the next one.
#[derive(Default)]
struct Clock {
    open: Vec<Weak<OpenSlot>>,
    hand: usize,
}

/// Where an open segment is while it is open.
#[derive(Default)]
struct OpenSlot {
    segment: ArcSwapOption<Segment>,
    /// Read since the hand of the clock came by.
    used: AtomicBool,
}

impl OpenFiles {
    /// For the segments in `dir`, of which at most `budget` (1 or more) stay open, with a block cache of `cache_bytes`.
    pub fn new(fs: Arc<dyn Fs>, dir: &Path, cache_bytes: u64, budget: usize) -> Self {
        OpenFiles {
            fs,
            dir: dir.to_path_buf(),
            cache: Arc::new(BlockCache::new(cache_bytes)),
            counters: Arc::default(),
            budget: budget.max(1),
            clock: Mutex::default(),
            openings: AtomicU64::new(0),
        }
    }

    /// What reading the segments cost.
    pub fn counters(&self) -> &ReadCounters {
        &self.counters
    }

    /// How often a segment was opened because somebody wanted to read it.
    pub fn openings(&self) -> u64 {
        self.openings.load(Relaxed)
    }

    /// How many segments are open, those that only readers at work still hold not counted.
    pub fn open_now(&self) -> usize {
        let is_open =
            |slot: &Weak<OpenSlot>| slot.upgrade().is_some_and(|slot| slot.segment.load().is_some());
        self.clock().open.iter().filter(|slot| is_open(slot)).count()
    }

    /// Opens segment `id` past the budget, for whoever checks the file. `digest` tells it from any other segment of that number.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`] when its footer is damaged or it is another segment.
    pub fn open_apart(&self, id: FileId, digest: u64) -> Result<Segment> {
        let path = self.dir.join(id.file_name(FileKind::Segment));
        let segment = match self.open_at(&path, id) {
            Err(missing) if is_missing(&missing) => {
                self.open_at(&self.dir.join(id.file_name(FileKind::Obsolete)), id).map_err(|_| missing)?
            }
            opened => opened?,
        };
        match segment.summary().digest == digest {
            true => Ok(segment),
            false => Err(Error::corruption(
                &path,
                0,
                "this is not the segment that the manifest means (other digest)",
            )),
        }
    }

    fn open_at(&self, path: &Path, id: FileId) -> Result<Segment> {
        let (cache, counters) = (&self.cache, &self.counters);
        let open = || Segment::open(&*self.fs, path, id, Arc::clone(cache), Arc::clone(counters));
        with_descriptor(self, open)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that `slot` holds `segment`, and closes another one if there are too many. The one that serves: another thread
    /// may have been quicker.
    fn keep(&self, slot: &Arc<OpenSlot>, segment: Arc<Segment>) -> Arc<Segment> {
        let mut clock = self.clock();
        if let Some(quicker) = slot.segment.load_full() {
            return quicker;
        }
        match clock.open.len() < self.budget {
            true => clock.open.push(Arc::downgrade(slot)),
            false => {
                let at = clock.vacate();
                if let Some(location) = clock.open.get_mut(at) {
                    *location = Arc::downgrade(slot);
                }
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
    /// Closes half of the open segments, those first that were not read lately.
    fn close_some(&self) -> bool {
        let mut clock = self.clock();
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

impl Clock {
    /// Closes one segment; its place in the ring, which must not be empty. After one round any will do: readers may be so busy that
    /// each was read again meanwhile.
    fn vacate(&mut self) -> usize {
        let round = self.open.len().max(1);
        for step in 0.. {
            let at = self.hand % round;
            self.hand = at + 1;
            let Some(slot) = self.open.get(at).and_then(Weak::upgrade) else { return at };
            if !slot.used.swap(false, Relaxed) || step >= round {
                slot.segment.store(None);
                return at;
            }
        }
        0
    }
}

/// A segment of a store, open or not; owns its two files.
pub struct SegmentFile {
    files: Arc<OpenFiles>,
    slot: Arc<OpenSlot>,
    id: FileId,
    digest: u64,
    obsolete: AtomicBool,
}

impl SegmentFile {
    /// Segment `id`; its file is neither opened nor looked at. `digest` tells it from any other segment of that number.
    pub fn new(files: Arc<OpenFiles>, id: FileId, digest: u64) -> Self {
        SegmentFile { files, slot: Arc::default(), id, digest, obsolete: AtomicBool::new(false) }
    }

    /// From now on the files go when the last holder lets go. Only after the manifest has forgotten the segment.
    ///
    /// Until then it has a name that tells it from a live one ([`FileKind::Obsolete`]). The next sync of the directory makes the name
    /// durable: a power cut before that which also takes the manifest leaves an obsolete segment that looks live.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Release);
        let [from, to] = [FileKind::Segment, FileKind::Obsolete].map(|kind| self.path(kind));
        if let Err(error) = self.files.fs.rename(&from, &to) {
            tracing::warn!(%error, "an obsolete segment keeps its name");
        }
    }

    /// Whether [`mark_obsolete`](Self::mark_obsolete) was called.
    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Acquire)
    }

    fn path(&self, kind: FileKind) -> PathBuf {
        self.files.dir.join(self.id.file_name(kind))
    }

    /// The open segment, to work with for longer: it stays open until dropped.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`] when its footer is damaged or it is not the segment that is meant.
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
    pub fn get(&self, key: &[u8]) -> Result<Option<Entry>> {
        match &*self.slot.segment.load() {
            Some(segment) => {
                self.touch();
                segment.get(key)
            }
            None => self.open_now()?.get(key),
        }
    }

    /// [`Segment::cursor`].
    pub fn cursor(&self, direction: Direction, start: Bound<&[u8]>, access: Access) -> Result<SegmentCursor> {
        self.open()?.cursor(direction, start, access)
    }

    /// Written only when it changes, so that readers on many cores share the line.
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
        if !self.is_obsolete() {
            return;
        }
        let fs = &self.files.fs;
        for kind in [FileKind::Segment, FileKind::Obsolete, FileKind::Filter] {
            let path = self.path(kind);
            let removed = match fs.file_len(&path) {
                Ok(None) => Ok(()),
                Ok(Some(_)) => fs.remove(&path),
                Err(error) => Err(error),
            };
            if let Err(error) = removed {
                // Harmless: the next open removes files that the manifest does not know.
                tracing::warn!(%error, "an obsolete file stays for now");
            }
        }
    }
}
