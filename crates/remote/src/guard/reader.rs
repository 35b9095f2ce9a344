//! Reads a published guard.

use super::current::Current;
use super::download::{clean, fetch};
use super::options::RemoteGuardOptions;
use super::publisher::another_guard;
use super::state::{self, Read, State};
use crate::error::{Error, Result};
use crate::kept::Kept;
use crate::local::dir_of;
use crate::mark::Mark;
use crate::remote::Remote;
use arc_swap::ArcSwap;
use sidebloom::filter::Verdict;
use sidebloom::guard::{Guard, GuardImage, GuardOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A published guard. A clone is another handle to share between threads; the thread that [polls](RemoteGuardOptions::poll) ends with
/// the last one.
#[derive(Clone)]
pub struct RemoteGuard {
    shared: Arc<Shared>,
    /// Ends the thread when it is dropped.
    _stop: Arc<Option<Sender<()>>>,
}

struct Shared {
    remote: Remote,
    cache: Cache,
    options: RemoteGuardOptions,
    current: ArcSwap<Current>,
    refreshing: Mutex<()>,
    counters: Counters,
}

/// The directory for what is published at the URL.
struct Cache {
    dir: PathBuf,
    kept: Kept,
}

impl Cache {
    fn mark(&self, state: &State) -> Mark {
        Mark::new(&self.dir, state.guard_id)
    }
}

#[derive(Default)]
struct Counters {
    /// Of guards that are no longer in use.
    asked: AtomicU64,
    absent: AtomicU64,
    too_old: AtomicU64,
    failed_refreshes: AtomicU64,
    bytes_fetched: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// Counters since opening, and what is in use.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RemoteGuardStats {
    /// The number of the state in use.
    pub state: u64,
    /// Keys looked up.
    pub asked: u64,
    /// Lookups answered "absent".
    pub absent: u64,
    /// Lookups answered "maybe" because the state was older than [`RemoteGuardOptions::max_staleness`], or its age unknown.
    pub too_old: u64,
    /// Refreshes that failed, those of the thread included.
    pub failed_refreshes: u64,
    /// Why the last of them did; `None` once one has succeeded.
    pub last_error: Option<String>,
    /// Bytes of filters that were fetched.
    pub bytes_fetched: u64,
    /// Filters that cannot be used: their keys are "maybe".
    pub filters_unavailable: u64,
    /// Whether the published guard was suspended: every answer is "maybe".
    pub suspended: bool,
}

impl RemoteGuard {
    /// Fetches the newest state into `dir`, which is created, and which several processes may share: each URL has a directory of its own in it,
    /// for this user alone.
    ///
    /// # Errors
    /// [`Error::NotPublished`]; [`Error::Damaged`], [`Error::UnsupportedVersion`] or [`Error::Store`] for objects that are no published guard;
    /// [`Error::Expired`] if the state was collected meanwhile; [`Error::WentBack`] if the newest state is older than one that was seen from
    /// this directory; [`Error::File`]; the errors of the bucket.
    pub fn open(remote: Remote, dir: impl AsRef<Path>, options: RemoteGuardOptions) -> Result<Self> {
        let dir = dir_of(dir.as_ref(), "guard", &remote)?;
        let cache = Cache { kept: Kept::new(&dir), dir };
        let Read { state, modified } = find_newest(&remote, &cache)?;
        let counters = Counters::default();
        let guard = open_image(&remote, &cache, &state, &counters)?;
        cache.mark(&state).raise(state.number)?;
        let current = ArcSwap::from_pointee(Current::new(guard, state, modified));
        let shared =
            Arc::new(Shared { remote, cache, options, current, refreshing: Mutex::new(()), counters });
        let stop = options.poll.map(|every| poll(Arc::clone(&shared), every)).transpose()?;
        Ok(RemoteGuard { shared, _stop: Arc::new(stop) })
    }

    /// Whether a row may have this key, from memory alone, as of the state in use. See the [module](super) for what "absent" means.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        let current = self.shared.current.load();
        match current.is_within(self.shared.options.max_staleness) {
            true => current.guard.may_contain(key),
            false => {
                self.shared.counters.too_old.fetch_add(1, Relaxed);
                Verdict::Maybe
            }
        }
    }

    /// [`may_contain`](Self::may_contain) for several keys, in the order of `keys`.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let current = self.shared.current.load();
        match current.is_within(self.shared.options.max_staleness) {
            true => current.guard.may_contain_many(keys),
            false => {
                self.shared.counters.too_old.fetch_add(keys.len() as u64, Relaxed);
                vec![Verdict::Maybe; keys.len()]
            }
        }
    }

    /// Takes over the newest state, if there is a newer one. Returns whether there was.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and [`Error::Foreign`]. The state before stays in use.
    pub fn refresh(&self) -> Result<bool> {
        self.shared.refresh()
    }

    /// When the state in use was taken, by the publisher's clock.
    pub fn as_of(&self) -> SystemTime {
        self.shared.current.load().as_of()
    }

    /// The age of the state in use; `None` if the clocks of publisher, store and this machine differ by more than 30 seconds.
    pub fn staleness(&self) -> Option<Duration> {
        self.shared.current.load().staleness()
    }

    /// Counters since opening, and what is in use.
    pub fn stats(&self) -> RemoteGuardStats {
        let (counters, current) = (&self.shared.counters, self.shared.current.load());
        let guard = current.guard.stats();
        let too_old = counters.too_old.load(Relaxed);
        RemoteGuardStats {
            state: current.state.number,
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
        let outcome = self
            .find_newer()
            .and_then(|newer| newer.map(|newer| self.take(newer)).transpose().map(|taken| taken.is_some()));
        if outcome.is_err() {
            self.counters.failed_refreshes.fetch_add(1, Relaxed);
        }
        let error = outcome.as_ref().err().map(ToString::to_string);
        *self.counters.last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
        outcome
    }

    /// The hint leads over states that were collected; it may lag behind the newest.
    fn find_newer(&self) -> Result<Option<Read>> {
        let next = self.current.load().state.number.saturating_add(1);
        match state::hint(&self.remote)? {
            Some(hint) if hint > next => state::newest(&self.remote),
            _ => state::newest_from(&self.remote, next),
        }
    }

    fn take(&self, Read { state, modified }: Read) -> Result<()> {
        let before = self.current.load_full();
        if state.guard_id != before.state.guard_id {
            return Err(another_guard(&self.remote));
        }
        // Keys of the state in use may be missing in an older one, which would deny them.
        let mark = self.cache.mark(&state);
        mark.check(&self.remote, before.state.number, state.number)?;
        let has_all = before.guard.stats().filters_unavailable == 0;
        let guard = match state.has_keys_of(&before.state) && has_all {
            true => before.guard.clone(),
            false => {
                let guard = open_image(&self.remote, &self.cache, &state, &self.counters)?;
                let stats = before.guard.stats();
                self.counters.asked.fetch_add(stats.asked, Relaxed);
                self.counters.absent.fetch_add(stats.absent, Relaxed);
                guard
            }
        };
        // Also of the handle in use: what it was told of a suspension holds for the keys that both have.
        if state.suspended {
            guard.suspend()
        } else {
            guard.resume()
        }
        mark.raise(state.number)?;
        clean(&self.cache.dir, &state);
        self.current.store(Arc::new(Current::new(guard, state, modified)));
        Ok(())
    }
}

/// The newest state, which is never older than one that was seen from this directory.
fn find_newest(remote: &Remote, cache: &Cache) -> Result<Read> {
    let newest = || {
        let none = || Error::NotPublished {
            url: remote.url().to_owned(),
            what: "there is no state of a guard".into(),
        };
        state::newest(remote)?.ok_or_else(none)
    };
    let found = newest()?;
    let mark = cache.mark(&found.state);
    let seen = mark.read()?;
    if found.state.number >= seen {
        return Ok(found);
    }
    // Another reader may have seen a later one in between; the store has it then.
    let again = newest()?;
    match again.state.guard_id == found.state.guard_id {
        true => mark.check(remote, seen, again.state.number).map(|()| again),
        false => Ok(again),
    }
}

fn open_image(remote: &Remote, cache: &Cache, state: &State, counters: &Counters) -> Result<Guard> {
    let (files, bytes) = fetch(remote, &cache.dir, &cache.kept, state)?;
    counters.bytes_fetched.fetch_add(bytes, Relaxed);
    let image = GuardImage::from_parts(state.settings.clone(), state.manifest.clone(), files);
    if image.guard_id()? != state.guard_id {
        return Err(another_guard(remote));
    }
    let guard = GuardOptions::new().open_image(&image)?;
    if state.suspended {
        guard.suspend();
    }
    Ok(guard)
}

/// Starts the thread that looks for newer states, until the sender is dropped.
fn poll(shared: Arc<Shared>, every: Duration) -> Result<Sender<()>> {
    let (stop, stopped): (_, Receiver<()>) = channel();
    let name = "sidebloom-guard-poll".to_owned();
    let dir = shared.cache.dir.clone();
    let run = move || {
        while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = shared.refresh() {
                tracing::warn!(%error, "cannot look for a newer state of the guard; the one in use stays until it is too old");
            }
        }
    };
    let spawned = std::thread::Builder::new().name(name).spawn(run);
    spawned.map(|_| stop).map_err(Error::file("start a thread for", &dir))
}
