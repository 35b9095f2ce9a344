//! Reads a published store: filters and indexes are local; blocks are fetched when a filter says "maybe".

use crate::disk_cache::DiskCache;
use crate::error::Result;
use crate::find_generation::{Found, Generations};
use crate::follow::Follower;
use crate::fs::RemoteFs;
use crate::generation::Kind;
use crate::local_files::LocalFiles;
use crate::lost_filter::{LostFilter, leave_out};
use crate::remote::Remote;
use crate::writer::CLOCK_TOLERANCE;
use sidebloom::fs::Process;
use sidebloom::{Db, Options};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How often a reader checks that its own generation still exists, if there is no next one.
const LOOK_FOR_OWN_EVERY: Duration = Duration::from_secs(60);

/// Options for reading a published store.
#[derive(Debug, Clone)]
pub struct ReaderOptions {
    store: Options,
    cache_bytes: u64,
    poll: Option<Duration>,
    tolerance: Duration,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        ReaderOptions { store: Options::new(), cache_bytes: 0, poll: None, tolerance: CLOCK_TOLERANCE }
    }
}

impl ReaderOptions {
    /// No disk cache, and no polling.
    pub fn new() -> Self {
        Self::default()
    }

    /// Options of the store, such as its block cache size. The reader sets file system and `follow`.
    pub fn store(mut self, options: Options) -> Self {
        self.store = options;
        self
    }

    /// Keeps fetched blocks on disk, in up to this many bytes. Default 0: none.
    pub fn disk_cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Looks for the next generation this often, in the background. Default: only in [`Reader::refresh`].
    pub fn poll_every(mut self, interval: Duration) -> Self {
        self.poll = Some(interval);
        self
    }

    /// Maximum difference between the clocks of this machine and the bucket. Default [`CLOCK_TOLERANCE`].
    pub fn clock_tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Opens what is published at a place. `dir` is a directory for filters and indexes, 1 to 2 % of the
    /// data. Each URL has its own subdirectory, so any readers may share it. Local files are hashed before
    /// use, and a private bucket's contents stay private.
    ///
    /// # Errors
    /// [`Error::NotPublished`](crate::Error::NotPublished); [`Error::Damaged`](crate::Error::Damaged) for a
    /// generation or a file that is not what its writer wrote, except that a missing or damaged filter is
    /// only a warning: its segment is read instead; [`Error::WentBack`](crate::Error::WentBack) if the bucket
    /// shows an older generation than one seen from this directory; errors of the bucket, of the directory
    /// and of opening a store.
    pub fn open(self, remote: Remote, dir: impl AsRef<Path>) -> Result<Reader> {
        let shared = Arc::new(Shared::open(remote, dir.as_ref(), self.cache_bytes, self.tolerance)?);
        let store = self.store.filesystem(Arc::new(shared.fs.clone())).follow(true);
        let db = store.open(shared.fs.local().store_dir())?;
        let polling = self.poll.map(|interval| Polling::start(&shared, &db, interval)).transpose()?;
        Ok(Reader { db, shared, _polling: polling })
    }
}

/// A published store, open for reading.
pub struct Reader {
    db: Db,
    shared: Arc<Shared>,
    _polling: Option<Polling>,
}

/// How old a reader's view may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staleness {
    /// Everything written before this time, by the writer's clock, is visible.
    pub as_of: SystemTime,
    /// How long ago that was by this machine's clock; 0 if it is in the future.
    pub age: Duration,
    /// How long ago the reader last verified that there is no later generation.
    pub checked: Duration,
    /// How far the bucket's clock was ahead of or behind this machine's, or the writer's ahead of it, if more
    /// than the tolerance. `age` is then unreliable.
    pub clock_skew: Option<Duration>,
}

struct Shared {
    fs: RemoteFs,
    generations: Generations,
    tolerance: Duration,
    /// Held during a search for generations.
    refreshing: Mutex<()>,
    checks: Mutex<Checks>,
}

struct Checks {
    checked: Instant,
    /// By this machine's clock.
    checked_at: SystemTime,
    /// When the reader's own generation was last looked for.
    own_seen: Instant,
    clock_skew: Option<Duration>,
}

impl Reader {
    /// Opens what is published at a place, with default options.
    ///
    /// # Errors
    /// The errors of [`ReaderOptions::open`].
    pub fn open(remote: Remote, dir: impl AsRef<Path>) -> Result<Self> {
        ReaderOptions::new().open(remote, dir)
    }

    /// The store. It shows the newest generation found; snapshots and iterators do not change.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The number of the generation.
    pub fn generation(&self) -> u64 {
        self.shared.fs.generation().number
    }

    /// Looks for later generations and shows the newest. Returns whether there was one.
    ///
    /// # Errors
    /// The errors of [`ReaderOptions::open`]. The store then shows the same as before.
    pub fn refresh(&self) -> Result<bool> {
        self.shared.refresh(&self.db)
    }

    /// How old the reader's view may be.
    pub fn staleness(&self) -> Staleness {
        self.shared.staleness()
    }

    /// Requests for parts of data since the reader was opened; each is one ranged GET.
    pub fn data_gets(&self) -> u64 {
        self.shared.fs.gets()
    }
}

impl Shared {
    fn open(remote: Remote, dir: &Path, cache_bytes: u64, tolerance: Duration) -> Result<Self> {
        let generations = Generations::new(&remote, Kind::Store);
        let local = LocalFiles::open(dir, &generations)?;
        let cache = match cache_bytes {
            0 => None,
            bytes => Some(DiskCache::create(local.dir(), bytes)?),
        };
        let (checked, checked_at) = (Instant::now(), SystemTime::now());
        let follower = Follower { generations: &generations, dir: local.dir() };
        let (found, ()) = follower.newest(|found, is_last| fetch(&generations, &local, found, is_last))?;
        let checks = Checks { checked, checked_at, own_seen: checked, clock_skew: None };
        let fs = RemoteFs::new(generations.remote.clone(), local, cache, found.generation);
        let shared =
            Shared { fs, generations, tolerance, refreshing: Mutex::new(()), checks: Mutex::new(checks) };
        shared.clean()?;
        Ok(shared)
    }

    /// Fetches the newest generation if there is a later one. The caller then refreshes the store.
    fn advance(&self) -> Result<bool> {
        let (own, generations, local) = (self.fs.generation(), &self.generations, self.fs.local());
        let (checked, checked_at) = (Instant::now(), SystemTime::now());
        let newest = Follower { generations, dir: local.dir() }.after(
            &own,
            || self.may_be_collected(),
            |found, is_last| {
                self.note_skew(found.written);
                fetch(generations, local, found, is_last)
            },
        )?;
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        (checks.checked, checks.checked_at) = (checked, checked_at);
        drop(checks);
        let is_newer = newest.is_some();
        newest.into_iter().for_each(|(found, ())| self.fs.advance(found.generation));
        Ok(is_newer)
    }

    /// Whether to check our own generation: every minute, and when one of its objects was gone.
    fn may_be_collected(&self) -> bool {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = checks.own_seen.elapsed() > LOOK_FOR_OWN_EVERY;
        if is_due {
            checks.own_seen = Instant::now();
        }
        self.fs.take_expired() || is_due
    }

    /// A generation was written between the last check and now: if its time says otherwise, a clock is wrong.
    fn note_skew(&self, written: SystemTime) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let (early, late) = (checks.checked_at, SystemTime::now());
        let before = early.duration_since(written).unwrap_or_default();
        let after = written.duration_since(late).unwrap_or_default();
        let skew = before.max(after);
        checks.clock_skew = (skew > self.tolerance).then_some(skew);
        if let Some(skew) = checks.clock_skew {
            tracing::warn!(
                ?skew,
                url = self.generations.remote.url(),
                "the clocks of this machine and of the bucket differ"
            );
        }
    }

    fn refresh(&self, db: &Db) -> Result<bool> {
        let _alone = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = self.advance()?;
        if is_newer {
            db.catch_up()?;
            self.clean()?;
        }
        Ok(is_newer)
    }

    /// Removes obsolete local files.
    fn clean(&self) -> Result<()> {
        self.fs.local().clean(&self.fs.local_files())?;
        // Another reader may have been alone for a moment.
        let lost = self.fs.local().fetch(&self.generations.remote, &self.fs.generation())?;
        lost.iter().for_each(LostFilter::warn); // Without the file, the engine reads the segment.
        Ok(())
    }

    fn staleness(&self) -> Staleness {
        let as_of = self.fs.generation().as_of();
        let ahead = as_of.duration_since(SystemTime::now()).ok().filter(|ahead| *ahead > self.tolerance);
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        Staleness {
            as_of,
            age: as_of.elapsed().unwrap_or_default(),
            checked: checks.checked.elapsed(),
            clock_skew: checks.clock_skew.max(ahead),
        }
    }
}

/// Fetches what a generation names, except filters that the bucket lacks.
fn fetch(generations: &Generations, local: &LocalFiles, found: &mut Found, is_last: bool) -> Result<()> {
    let generation = &mut found.generation;
    let mut lost = local.fetch(&generations.remote, generation)?;
    // If only filters are gone, the generation may have been collected; a later one may have these segments.
    if let Some(gone) = lost.iter().position(LostFilter::is_gone)
        && !is_last
        && generations.newest(None)?.is_some_and(|newest| newest.generation.number > generation.number)
    {
        return Err(lost.swap_remove(gone).into_error());
    }
    leave_out(generation, &lost);
    Ok(())
}

/// A thread that looks for generations until dropped.
struct Polling {
    /// The process that owns the thread.
    process: Process,
    stop: Option<std::sync::mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Polling {
    fn start(shared: &Arc<Shared>, db: &Db, interval: Duration) -> Result<Self> {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (shared, db) = (Arc::clone(shared), db.clone());
        let poll = move || {
            use std::sync::mpsc::RecvTimeoutError::Timeout;
            let mut failing = false;
            while stopped.recv_timeout(interval) == Err(Timeout) {
                match shared.refresh(&db) {
                    Err(error) if !failing => {
                        failing = true;
                        tracing::warn!(%error, "cannot look for the next generation; trying again");
                    }
                    Err(_) => {}
                    Ok(_) => failing = false,
                }
            }
        };
        let thread = std::thread::Builder::new().name("sidebloom-poll".into()).spawn(poll);
        let thread = thread
            .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Other("start a thread for"), "a reader", e))?;
        Ok(Polling { process: Process::current(), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A forked process does not have the thread.
            std::mem::forget((self.stop.take(), self.thread.take()));
            return;
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}
