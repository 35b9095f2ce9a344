//! Reads a published guard.

use super::current_generation::Current;
use super::options::RemoteGuardOptions;
use crate::error::{Error, Result};
use crate::find_generation::Generations;
use crate::follow::Follower;
use crate::generation::{File, Generation, Holds, Kind};
use crate::kept_files::KeptFiles;
use crate::private_files;
use crate::remote::Remote;
use arc_swap::ArcSwap;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardImage, GuardOptions};
use sidebloom::internal::FileKind;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Age at which files are removed that the current generation does not need: another process may be about to
/// open younger ones.
const KEPT: Duration = Duration::from_secs(3600);

/// A published guard. Clones share it, for use in several threads; the thread that
/// [polls](RemoteGuardOptions::poll) ends with the last clone.
#[derive(Clone)]
pub struct RemoteGuard {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    _stop: Arc<Option<Sender<()>>>,
}

struct Shared {
    generations: Generations,
    kept: KeptFiles,
    options: RemoteGuardOptions,
    current: ArcSwap<Current>,
    refreshing: Mutex<()>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    /// Filters of guards no longer in use.
    asked: AtomicU64,
    absent: AtomicU64,
    too_old: AtomicU64,
    failed_refreshes: AtomicU64,
    bytes_fetched: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// Counters since opening, and the generation in use.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoteGuardStats {
    /// The number of the generation in use.
    pub state: u64,
    /// Keys looked up.
    pub asked: u64,
    /// Lookups answered "absent".
    pub absent: u64,
    /// Lookups answered "maybe" because the generation was older than [`RemoteGuardOptions::max_staleness`],
    /// or its age unknown.
    pub too_old: u64,
    /// Failed refreshes, including the thread's.
    pub failed_refreshes: u64,
    /// The error of the last refresh; `None` if it succeeded.
    pub last_error: Option<String>,
    /// Bytes fetched: filters and their generations.
    pub bytes_fetched: u64,
    /// Unusable filters: their keys are "maybe".
    pub filters_unavailable: u64,
    /// Whether the published guard was suspended: every answer is "maybe".
    pub suspended: bool,
}

impl RemoteGuard {
    /// Fetches the newest generation into `dir`, creating it. Several processes may share it: each URL has
    /// its own subdirectory, private to this user.
    ///
    /// # Errors
    /// [`Error::NotPublished`]; [`Error::Damaged`], [`Error::UnsupportedVersion`] or [`Error::Store`] for
    /// objects that are not a published guard; [`Error::Expired`] for one missing from the bucket;
    /// [`Error::WentBack`] if the newest generation is older than one seen from this directory;
    /// [`Error::File`]; errors of the bucket.
    pub fn open(remote: Remote, dir: impl AsRef<Path>, options: RemoteGuardOptions) -> Result<Self> {
        let generations = Generations::new(&remote, Kind::Guard);
        let kept = KeptFiles::open(dir.as_ref(), &generations)?;
        let counters = Counters::default();
        let (found, guard) = Follower { generations: &generations, dir: &kept.dir }
            .newest(|found, _| open_image(&generations, &kept, &found.generation, &counters))?;
        let current = ArcSwap::from_pointee(Current::new(guard, found));
        let shared =
            Arc::new(Shared { generations, kept, options, current, refreshing: Mutex::new(()), counters });
        let stop = options.poll.map(|every| poll(Arc::clone(&shared), every)).transpose()?;
        Ok(RemoteGuard { shared, _stop: Arc::new(stop) })
    }

    /// Whether a row may have this key, from memory alone, as of the current generation. See the
    /// [module](super) for the meaning of "absent".
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        let current = self.shared.current.load();
        if current.is_within(self.shared.options.max_staleness) {
            current.guard.may_contain(key)
        } else {
            self.shared.counters.too_old.fetch_add(1, Relaxed);
            Verdict::Maybe
        }
    }

    /// [`may_contain`](Self::may_contain) for several keys, in the order of `keys`.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let current = self.shared.current.load();
        if current.is_within(self.shared.options.max_staleness) {
            current.guard.may_contain_many(keys)
        } else {
            self.shared.counters.too_old.fetch_add(keys.len() as u64, Relaxed);
            vec![Verdict::Maybe; keys.len()]
        }
    }

    /// Switches to the newest generation, if there is a newer one. Returns whether there was.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and [`Error::Foreign`]. The previous generation stays in use.
    pub fn refresh(&self) -> Result<bool> {
        self.shared.refresh()
    }

    /// When the generation in use was taken, by the publisher's clock.
    pub fn as_of(&self) -> SystemTime {
        self.shared.current.load().as_of()
    }

    /// The age of the current generation; `None` if the clocks of publisher, bucket and this machine differ
    /// by more than 30 seconds.
    pub fn staleness(&self) -> Option<Duration> {
        self.shared.current.load().staleness()
    }

    /// Counters since opening, and the generation in use.
    pub fn stats(&self) -> RemoteGuardStats {
        let (counters, current) = (&self.shared.counters, self.shared.current.load());
        let guard = current.guard.stats();
        let too_old = counters.too_old.load(Relaxed);
        RemoteGuardStats {
            state: current.generation.number,
            asked: counters.asked.load(Relaxed) + guard.asked + too_old,
            absent: counters.absent.load(Relaxed) + guard.absent,
            too_old,
            failed_refreshes: counters.failed_refreshes.load(Relaxed),
            last_error: counters.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            bytes_fetched: counters.bytes_fetched.load(Relaxed),
            filters_unavailable: guard.filters_unavailable,
            suspended: guard.suspended,
        }
    }
}

impl Shared {
    fn refresh(&self) -> Result<bool> {
        let _only = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = self.advance();
        if outcome.is_err() {
            self.counters.failed_refreshes.fetch_add(1, Relaxed);
        }
        let error = outcome.as_ref().err().map(ToString::to_string);
        *self.counters.last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
        outcome
    }

    fn advance(&self) -> Result<bool> {
        let before = self.current.load_full();
        let has_all = before.guard.stats().filters_unavailable == 0;
        let follower = Follower { generations: &self.generations, dir: &self.kept.dir };
        // Always look for our own generation: nothing else tells whether it was collected with later ones.
        let newest = follower.after(
            &before.generation,
            || true,
            |found, _| {
                if has_all && has_same_keys(&found.generation, &before.generation) {
                    Ok(None)
                } else {
                    open_image(&self.generations, &self.kept, &found.generation, &self.counters).map(Some)
                }
            },
        )?;
        let Some((found, opened)) = newest else { return Ok(false) };
        if opened.is_some() {
            let stats = before.guard.stats();
            self.counters.asked.fetch_add(stats.asked, Relaxed);
            self.counters.absent.fetch_add(stats.absent, Relaxed);
        }
        let guard = opened.unwrap_or_else(|| before.guard.clone());
        // The handle in use too: a suspension that it was told of applies to the keys that both have.
        match found.generation.holds {
            Holds::Guard { suspended: true, .. } => guard.suspend(),
            _ => guard.resume(),
        }
        let used: HashSet<PathBuf> =
            files(&found.generation).iter().map(|file| self.kept.path(file)).collect();
        self.current.store(Arc::new(Current::new(guard, found)));
        if let Err(error) = self.kept.clean(&used, KEPT) {
            tracing::debug!(%error, "cannot remove old filters; will try again");
        }
        Ok(true)
    }
}

/// Whether both have the same guard with the same keys.
fn has_same_keys(one: &Generation, other: &Generation) -> bool {
    let (
        Holds::Guard { settings, unfiltered, .. },
        Holds::Guard { settings: others, unfiltered: others_unfiltered, .. },
    ) = (&one.holds, &other.holds)
    else {
        return false;
    };
    (settings, unfiltered, &one.manifest, &one.files)
        == (others, others_unfiltered, &other.manifest, &other.files)
}

/// All files of a generation.
fn files(generation: &Generation) -> Vec<File> {
    generation.files.iter().cloned().chain([generation.manifest_file()]).collect()
}

fn open_image(
    generations: &Generations,
    kept: &KeptFiles,
    generation: &Generation,
    counters: &Counters,
) -> Result<Guard> {
    let Holds::Guard { suspended, settings, unfiltered } = &generation.holds else {
        return Err(generations.not_published());
    };
    let files = files(generation);
    let bytes = kept.fetch(&generations.remote, &files.iter().collect::<Vec<_>>(), |_, error| Err(error))?;
    counters.bytes_fetched.fetch_add(bytes, Relaxed);
    let path = kept.path(&generation.manifest_file());
    let manifest = private_files::read_at_most(&path, generation.manifest.bytes);
    let manifest = manifest.map_err(Error::file("read", &path))?.unwrap_or_default();
    let mut filters: BTreeMap<u64, Option<PathBuf>> =
        unfiltered.iter().map(|number| (*number, None)).collect();
    filters.extend(files.iter().filter_map(|file| match FileKind::parse(&file.name)? {
        (id, FileKind::Filter) => Some((id.0, Some(kept.path(file)))),
        _ => None,
    }));
    let image = GuardImage::from_parts(settings.clone(), manifest, filters);
    if image.guard_id()? != generation.owner() {
        return Err(generations.foreign("the settings of another guard".into()));
    }
    let guard = GuardOptions::new().open_image(&image)?;
    if *suspended {
        guard.suspend();
    }
    Ok(guard)
}

/// Starts the thread that looks for newer generations, until the sender is dropped.
fn poll(shared: Arc<Shared>, every: Duration) -> Result<Sender<()>> {
    let (stop, stopped): (_, Receiver<()>) = channel();
    let name = "sidebloom-guard-poll".to_owned();
    let dir = shared.kept.dir.clone();
    let run = move || {
        while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = shared.refresh() {
                tracing::warn!(%error, "cannot look for a newer generation of the guard; the current one stays in use until it is too old");
            }
        }
    };
    let spawned = std::thread::Builder::new().name(name).spawn(run);
    spawned.map(|_| stop).map_err(Error::file("start a thread for", &dir))
}
