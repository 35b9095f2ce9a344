//! The handle: opening, the public operations, and closing with the last clone.

use super::background;
use super::core::{Control, Core, lock};
use super::metrics::Metrics;
use super::options::{Durability, Options};
use super::policy::FilterPolicy;
use super::range::Range;
use super::recover::{LOCK, LOG_KEPT_BYTES, inspect, next_free_id};
use super::resume::Health;
use super::sidecars::RebuildReport;
use super::snapshot::Snapshot;
use super::view::View;
use super::write::Log;
use crate::error::{Error, Result};
use crate::filter::Verdict;
use crate::fs::{Fs, LockGuard, LockMode, SparingFs, create_dir_durably};
use crate::hash::{KeyHash, KeyHasher, random_u64};
use crate::id::FileId;
use crate::key::Value;
use crate::manifest::{LiveSet, Manifest, ManifestState, check_levels, read_state};
use crate::memtable::Memtable;
use crate::segment::{OpenFiles, StoreIdentity};
use crate::sidecar::Maps;
use crate::wal::Batch;
use arc_swap::ArcSwap;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;

/// An open store. A clone is another handle to the same store, to share between threads; the last one to go closes it, and waits
/// for the merge of level 0 when that has 16 segments or more.
///
/// One process at a time has a store open for writing. Reads never wait for writes, flushes or compactions.
#[derive(Clone)]
pub struct Db {
    handle: Arc<Handle>,
}

/// Lives as long as any `Db`.
struct Handle {
    core: Arc<Core>,
    threads: Vec<JoinHandle<()>>,
    _lock: Box<dyn LockGuard>,
}

impl Db {
    /// Opens the store in directory `path` with default options, and creates it when there is none.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    pub(crate) fn open_with(path: &Path, options: Options) -> Result<Self> {
        let fs = Arc::clone(&options.fs);
        let exists = inspect(&*fs, path)?;
        if !exists && (options.read_only || !options.create_if_missing) {
            return Err(Error::NotAStore { path: path.to_path_buf(), what: "there is no store".into() });
        }
        let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
        if !exists {
            create_dir_durably(&*fs, path)?;
        }
        let guard = fs.lock(&path.join(LOCK), mode)?;
        if !inspect(&*fs, path)? {
            create(&fs, path, options.key_hash)?;
        }
        let core = Arc::new(if options.read_only {
            open_read_only(path, options)?
        } else {
            open_writable(path, options)?
        });
        let threads = background::spawn(&core)?;
        core.queue_unverified();
        core.try_suspects_later();
        Ok(Db { handle: Arc::new(Handle { core, threads, _lock: guard }) })
    }

    fn core(&self) -> &Core {
        &self.handle.core
    }

    /// Sets `key` to `value`.
    ///
    /// # Errors
    /// [`Error::KeyTooLarge`], [`Error::ValueTooLarge`]; [`Error::Io`] when the log cannot be written, and from then on
    /// [`Error::Poisoned`], unless the disk is full: then writes are refused until there is space; [`Error::ReadOnly`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(key, value);
        self.write(batch)
    }

    /// Removes `key`; one that is not there is fine.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = Batch::new();
        batch.delete(key);
        self.write(batch)
    }

    /// Applies a batch: all of it or nothing, also after a crash; readers see it all at once.
    ///
    /// # Errors
    /// As [`put`](Self::put); then nothing of the batch is applied.
    pub fn write(&self, batch: Batch) -> Result<()> {
        self.write_with(batch, self.core().options.durability)
    }

    /// [`write`](Self::write) with a durability of its own.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(&self, batch: Batch, durability: Durability) -> Result<()> {
        self.core().write(batch, durability)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// [`Error::Corruption`] when the block that should hold it is damaged, [`Error::Io`] when it cannot be read.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        self.core().get(key.as_ref())
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Whether `key` may have a value, from memory alone: memtables and filters. [`Verdict::Absent`] is certain. It never reads a block,
    /// so that it costs the same however large the store is; a deleted key may stay "maybe" until compaction is through with it.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        self.core().may_contain(key.as_ref())
    }

    /// [`may_contain`](Self::may_contain) of several keys, in the order of `keys`. The filter lines of many keys are fetched at once.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        self.core().may_contain_many(keys)
    }

    /// Fills an empty store with rows in ascending order of their keys, each key once: straight into segments with their filters,
    /// past log and memtable, and durable when it returns. All rows become visible at once. The store may be used meanwhile, by `rows`
    /// too, but a write in between makes it no longer empty.
    ///
    /// # Errors
    /// An error among the rows, which ends it; [`Error::KeyOutOfOrder`]; [`Error::NotEmpty`]. Then the
    /// store is as before. As [`sync`](Self::sync) when the segments cannot be published.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.core().ingest(&mut rows.into_iter())
    }

    /// The values of several keys, in the order of `keys`, all as of one moment. The filter lines of many keys are fetched at once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value>>> {
        self.core().multi_get(keys)
    }

    /// Keys and values within a range of keys, in order; see [`Range`].
    ///
    /// ```no_run
    /// # fn main() -> sidebloom::Result<()> {
    /// # let db = sidebloom::Db::open("songs.db")?;
    /// for kv in db.range(b"a".to_vec()..b"m".to_vec()) {
    ///     let (key, value) = kv?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Range {
        self.snapshot().range(range)
    }

    /// All keys and values, in order.
    pub fn iter(&self) -> Range {
        self.snapshot().iter()
    }

    /// The keys that start with `prefix`, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range {
        self.snapshot().prefix(prefix)
    }

    /// The store as it is now, to read from while it changes. It keeps its memtables in memory and its segments on disk
    /// for as long as the store is open. Drop snapshots and iterators before the last [`Db`]: segments are opened when they are read, so a
    /// read that comes after another opening has removed one is an [`Error::Io`].
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Arc::clone(&self.handle.core))
    }

    /// Makes everything acknowledged so far durable.
    ///
    /// # Errors
    /// [`Error::Io`], and from then on [`Error::Poisoned`] unless the disk is full.
    pub fn sync(&self) -> Result<()> {
        self.core().sync()
    }

    /// Writes the memtables out as segments, and waits for it.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn flush(&self) -> Result<()> {
        self.core().flush()
    }

    /// Flushes and merges everything into one sorted run without tombstones: all that was there at the call, and beside a store that
    /// takes writes. It works in small steps, for which no writer waits; what is done stays done, so that a call after a crash goes on
    /// where that stopped. Takes free disk space of a few segments at a time. Tombstones stay where a segment in quarantine has keys.
    ///
    /// # Errors
    /// As [`sync`](Self::sync); [`Error::Corruption`] when a segment is damaged: it goes to quarantine, and the next call leaves it out.
    pub fn compact(&self) -> Result<()> {
        self.core().compact_range((Bound::Unbounded, Bound::Unbounded))
    }

    /// [`compact`](Self::compact) for the segments that have keys of this range; the others stay as they are. An empty range changes nothing.
    ///
    /// # Errors
    /// As [`compact`](Self::compact).
    pub fn compact_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        self.core().compact_range((owned(range.start_bound()), owned(range.end_bound())))
    }

    /// Waits until the background has nothing left to flush or to compact.
    ///
    /// # Errors
    /// [`Error::Poisoned`] when background work failed.
    pub fn wait_for_compaction(&self) -> Result<()> {
        self.core().wait_for_compaction()
    }

    /// Gives every segment the filter that `policy` asks for, and new segments too from now on, while the store serves. Segments are
    /// read, not written. What fits already is kept, so that a rebuild that was interrupted goes on where it stopped. Segments in
    /// quarantine are left out ([`RebuildReport::quarantined`]).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a policy out of range or without filters; as [`sync`](Self::sync). [`Error::Io`] or
    /// [`Error::Corruption`] when a segment cannot be read, which is then in quarantine: the others have their filters by then.
    pub fn rebuild_filters(&self, policy: FilterPolicy) -> Result<RebuildReport> {
        self.rebuild_filters_with(policy, |_| ControlFlow::Continue(()))
    }

    /// [`rebuild_filters`](Self::rebuild_filters) that calls `progress` before each segment and stops when told to.
    ///
    /// # Errors
    /// As [`rebuild_filters`](Self::rebuild_filters).
    pub fn rebuild_filters_with(
        &self,
        policy: FilterPolicy,
        mut progress: impl FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        self.core().rebuild_filters(policy, &mut progress)
    }

    /// Reads and verifies all filters, and the index partitions, now; otherwise the background does it after opening.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corruption`] when an index is damaged.
    pub fn warm(&self) -> Result<()> {
        self.core().warm()
    }

    /// Makes a copy of the store in a new directory, itself a store, by hard links: both share the segments' bytes. On another file
    /// system, which hard links cannot reach, the bytes are copied and synced; writers go on meanwhile.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`]; [`Error::Io`]: the target is then removed again.
    pub fn checkpoint(&self, target: impl AsRef<Path>) -> Result<()> {
        self.core().checkpoint(target.as_ref())
    }

    /// Reads everything: each checksum, each key against its filter, the manifest against the files.
    ///
    /// # Errors
    /// Only when the check itself cannot be done; what it finds is in the report.
    pub fn verify(&self) -> Result<super::VerifyReport> {
        self.core().verify()
    }

    /// Counters since opening, and the shape of the store now.
    pub fn stats(&self) -> super::Stats {
        self.core().stats()
    }
}

/// Step 0 of recovery: an empty store.
fn create(fs: &Arc<dyn Fs>, path: &Path, key_hash: KeyHash) -> Result<()> {
    let header = StoreIdentity { store_id: random_u64(), hasher: KeyHasher::random(key_hash)? };
    Manifest::create(Arc::clone(fs), path, &ManifestState::new(header)).map(|_| ())
}

/// The segments of the store to be opened. From here on its file system closes some of them when descriptors run out.
fn open_files(path: &Path, options: &mut Options) -> Arc<OpenFiles> {
    let fs = Arc::clone(&options.fs);
    let files =
        Arc::new(OpenFiles::new(Arc::clone(&fs), path, options.block_cache_bytes, options.max_open_files));
    options.fs = Arc::new(SparingFs { fs, holder: Arc::clone(&files) as _ });
    files
}

fn open_writable(path: &Path, mut options: Options) -> Result<Core> {
    let files = open_files(path, &mut options);
    let names = options.fs.list(path)?;
    let (mut manifest, mut state) = Manifest::open(Arc::clone(&options.fs), path)?;
    let mut core = new_core(path, options, files, state.header)?;
    core.first_own_id = FileId(next_free_id(&state, &names));
    core.next_id = AtomicU64::new(core.first_own_id.0);
    let live = core.open_live(&state)?;
    let replayed = core.replay_logs(&state, &names)?;
    let (log, built) = core.start_writing(&mut manifest, &mut state, &live, replayed, &names)?;
    core.visible = AtomicU64::new(log.next_seq - 1);
    let live = Arc::new(live.with(built, &BTreeSet::new()));
    core.view = ArcSwap::from_pointee(View {
        active: Arc::clone(&log.active),
        immutable: Vec::new(),
        live,
        logs_reach_back: false,
    });
    core.control = Mutex::new(Control::new(log.id));
    core.log = Mutex::new(Some(log));
    core.manifest = Mutex::new(Some((manifest, state)));
    Ok(core)
}

/// Reads the logs into memory and leaves every file as it is.
fn open_read_only(path: &Path, mut options: Options) -> Result<Core> {
    let files = open_files(path, &mut options);
    let names = options.fs.list(path)?;
    let state = read_state(&*options.fs, path)?;
    check_levels(&state, path)?;
    let mut core = new_core(path, options, files, state.header)?;
    let live = core.open_live(&state)?;
    let replayed = core.replay_logs(&state, &names)?;
    let logs_reach_back = replayed.oldest.is_some_and(|oldest| oldest <= live.max_seq());
    core.visible = AtomicU64::new((replayed.next_seq - 1).max(live.max_seq()));
    let active = Arc::new(replayed.table);
    core.view =
        ArcSwap::from_pointee(View { active, immutable: Vec::new(), live: Arc::new(live), logs_reach_back });
    Ok(core)
}

fn new_core(path: &Path, options: Options, files: Arc<OpenFiles>, header: StoreIdentity) -> Result<Core> {
    let active = Arc::new(Memtable::new(options.memtable_bytes)?);
    let work = Arc::new(Condvar::new());
    Ok(Core {
        fs: Arc::clone(&options.fs),
        dir: path.to_path_buf(),
        header,
        files,
        metrics: Metrics::default(),
        view: ArcSwap::from_pointee(View {
            active,
            immutable: Vec::new(),
            live: Arc::new(LiveSet::default()),
            logs_reach_back: false,
        }),
        visible: AtomicU64::new(0),
        next_id: AtomicU64::new(1),
        first_own_id: FileId(1),
        log: Mutex::new(None),
        waiting: Mutex::new(Vec::new()),
        unsynced: Mutex::new(Vec::new()),
        manifest: Mutex::new(None),
        control: Mutex::new(Control::new(FileId(0))),
        maps: Arc::new(Maps::new(Arc::clone(&options.fs), options.max_mapped_filters, Arc::clone(&work))),
        work,
        progress: Condvar::new(),
        failure: OnceLock::new(),
        filter_policy: Mutex::new(options.filter_policy),
        options,
    })
}

impl Drop for Handle {
    /// Closes: running compactions are abandoned, the log is made durable, and a long one is flushed so that the next opening is quick.
    /// Only a level 0 that is over its limit is merged first: a store that never stays open for long would not get to it otherwise.
    fn drop(&mut self) {
        lock(&self.core.control).closing = true;
        self.core.work.notify_all();
        self.core.progress.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread had panicked");
            }
        }
        if let Err(error) = self.core.settle().and_then(|()| self.core.relieve_level0()) {
            tracing::error!(%error, "closing the store");
        }
    }
}

impl Core {
    fn settle(&self) -> Result<()> {
        if self.check_writable().is_err() {
            return Ok(());
        }
        let mut log = lock(&self.log);
        let Some(log) = log.as_mut() else { return Ok(()) };
        let waiting: usize = lock(&self.control).to_flush.iter().map(|(table, _)| table.bytes()).sum();
        if log.health == Health::Sound && waiting + log.active.bytes() < LOG_KEPT_BYTES {
            self.sync_log(log)?;
            return self.publish_log_mark();
        }
        self.flush_here(log).inspect_err(|_| {
            // The data stays in the log. A failed one is not touched again.
            if log.health == Health::Sound
                && let Err(error) = self.sync_log(log)
            {
                tracing::error!(%error, "closing the store");
            }
        })
    }

    /// Flushes all memtables in this thread. Only for a store that is closing.
    fn flush_here(&self, log: &mut Log) -> Result<()> {
        if !log.active.is_empty() || log.health == Health::Failed {
            self.rotate(log)?;
        }
        loop {
            let next = lock(&self.control).to_flush.pop_front();
            let Some((table, next_log)) = next else { return Ok(()) };
            self.flush_one(&table, next_log)?;
        }
    }
}
