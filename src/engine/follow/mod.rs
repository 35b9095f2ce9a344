//! Following: reading a store while another process writes it ([`Options::follow`](crate::Options::follow)).
//!
//! A follower checks the manifest and the logs every few milliseconds:
//! 1. If the manifest has changed, the follower reads the new edits, or the whole file if another has
//!    replaced it. It holds the new version before it releases the old one (`versions.rs`), so no file that
//!    it needs is removed. As long as readers use a removed segment, the follower keeps the old version held.
//! 2. New records of the last log go into that log's memtable. Each log has its own memtable, which is
//!    dropped once the manifest's floor is above the log, as in the writer.
//! 3. New logs are read from the start. A log that begins before its predecessor's end repeats what a failed
//!    or interrupted writer left there. Once the floor reaches it, it is read again: the writer may have
//!    reused sequence numbers of the failed one.
//! 4. The visible sequence number moves before the view changes, so no reader combines new segments with an
//!    old number: compaction may have dropped what that number needs.
//!
//! If the manifest changes during a pass, the pass is repeated, because logs may have been flushed and
//! removed ([`Follower::advance_to_now`]). Inconsistencies count as errors only if it has not changed.

pub(crate) mod filters;
pub(crate) mod logs;
pub(crate) mod read_position;
pub(crate) mod versions;

use self::filters::FollowedFilters;
use self::logs::FollowedLogs;
use self::read_position::{Following, Listing, Position};
use self::versions::Versions;
use crate::engine::filters::FilterKeeper;
use crate::engine::keyspaces::read_catalog::refresh;
use crate::engine::open::recover::Recovery;
use crate::engine::shared::Shared;
use crate::engine::storage::Storage;
use crate::error::{Error, IoOp, Result};
use crate::event::Event;
use crate::fs::Stamp;
use crate::id::{FileId, FileKind, LOCK};
use crate::key::Seq;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::{MANIFEST, ManifestState, ManifestTail, check_levels};
use crate::memtable::Memtable;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Instant, Mutex, lock};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// How often a follower looks for changes.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The longest clock tick of directory times. Changes within one tick may leave the time as it is.
const CLOCK_TICK: Duration = Duration::from_millis(25);
/// For file systems with times in whole seconds, such as ext3, or ext4 with 128-byte inodes.
const COARSE_TICK: Duration = Duration::from_secs(2);
/// An age at which a follower lags.
const LAG: Duration = Duration::from_secs(1);
/// How often it starts over because the manifest changed while it was reading.
const ATTEMPTS: usize = 100;

/// A store as a follower first sees it.
pub(crate) struct Followed {
    pub following: Following,
    pub live: LiveSet,
    /// Newest first.
    pub memtables: Vec<Arc<Memtable>>,
    pub logs_reach_back: bool,
    /// The last sequence number.
    pub visible: Seq,
}

/// Reads the store for the first time.
pub(crate) fn start_following(storage: &Storage, versions: Arc<Versions>) -> Result<Followed> {
    let _everything = versions.hold(0)?; // No file may be removed until a version is held.
    let since = Instant::now();
    let (position, live) = read_once(storage, |manifest| {
        let mut tail = ManifestTail::default();
        let state = read_version(storage, &versions, &mut tail, manifest)?;
        let version = versions.hold(state.next_id.0)?;
        let stamp = storage.fs.stamp(&storage.dir)?;
        let names = storage.fs.list(&storage.dir)?;
        let live = Recovery { storage, names: &names }.open_segments(&state)?;
        let logs = match FollowedLogs::replay(storage, &state, &names) {
            // A log was flushed during the read. The manifest that was read is complete without logs; the
            // store catches up next.
            Err(_) if storage.fs.stamp(&storage.dir.join(MANIFEST))? != manifest => {
                FollowedLogs::none(&state)
            }
            logs => logs?,
        };
        let dir = Listing { stamp, since: Instant::now(), is_settled: false };
        Ok((Position { state, version, tail, manifest, dir, logs, failing: false }, live))
    })?;
    let (memtables, logs_reach_back) = (position.logs.memtables(), position.logs.reach_back(&live));
    let visible = position.logs.last_seq().max(live.max_seq());
    let filters = Mutex::new(FollowedFilters::new(storage, &live));
    let (at, current_until) = (Mutex::new(position), AtomicU64::new(0));
    let following = Following { versions, at, filters, since, current_until };
    Ok(Followed { following, live, memtables, logs_reach_back, visible })
}

/// Follows the store's writer.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    filters: Arc<FilterKeeper>,
    following: Following,
}

impl Follower {
    pub fn new(shared: Arc<Shared>, filters: Arc<FilterKeeper>, following: Following) -> Self {
        Follower { shared, filters, following }
    }

    /// How far it has read.
    pub fn following(&self) -> &Following {
        &self.following
    }

    /// Makes everything visible that was written before this call.
    pub fn catch_up(&self) -> Result<()> {
        let following = &self.following;
        let mut at = lock(&following.at);
        let started = following.since.elapsed();
        self.advance_to_now(&following.versions, &mut at)?;
        refresh(&self.shared);
        following.current_until.fetch_max(started.as_micros() as u64, Ordering::AcqRel);
        Ok(())
    }

    /// Catches up regularly until the store is closed.
    pub fn follow_until_closed(&self) {
        let mut lagging_since = None;
        loop {
            let control = self.shared.control.lock();
            if control.closing || self.shared.sleep(control, Some(LOOK_EVERY)).closing {
                return;
            }
            let outcome = self.shared.guarded(|| self.catch_up().inspect(|()| self.look_at_filters()));
            let Some(outcome) = outcome else { return };
            self.note_lag(&mut lagging_since);
            let mut at = lock(&self.following.at);
            let failed_before = std::mem::replace(&mut at.failing, outcome.is_err());
            match outcome {
                Err(error) if !failed_before => {
                    tracing::warn!(%error, "cannot follow the store's writer; retrying until that succeeds");
                }
                Ok(()) if failed_before => tracing::info!("follows the store's writer again"),
                _ => {}
            }
        }
    }

    /// Tells when the follower begins to lag, and when it has caught up.
    fn note_lag(&self, lagging_since: &mut Option<Instant>) {
        let (events, age) = (&self.shared.storage.events, self.following.age());
        match *lagging_since {
            None if age > LAG => {
                *lagging_since = Some(Instant::now());
                events.emit(Event::FollowerLag { seconds: age.as_secs_f64() });
            }
            Some(since) if age <= LAG => {
                *lagging_since = None;
                let lagged = since.elapsed() + LAG;
                events.emit(Event::FollowerCaughtUp { seconds: lagged.as_secs_f64() });
            }
            _ => {}
        }
    }

    /// Repeats passes over the manifest and logs until everything written before the call is visible.
    ///
    /// If the manifest is the same afterwards, a pass has seen all logs. Otherwise some may have been flushed
    /// and removed before they were read. Then they are in the segments of a manifest whose floor is above
    /// the last log that existed before it was read.
    fn advance_to_now(&self, versions: &Arc<Versions>, at: &mut Position) -> Result<()> {
        let (storage, path) = (&self.shared.storage, self.shared.storage.dir.join(MANIFEST));
        if versions.is_replaced()? {
            return Err(replaced(storage)); // Its own directory, elsewhere now, may be unchanged.
        }
        let mut last_log = None;
        let mut attempt = 1;
        loop {
            let manifest = storage.fs.stamp(&path)?;
            let outcome = self.advance(versions, at, manifest);
            let is_past = at.manifest.is_some() && last_log.is_some_and(|last| at.state.log_floor > last);
            if is_past {
                return Ok(());
            }
            if storage.fs.stamp(&path)? == manifest || attempt == ATTEMPTS {
                return outcome;
            }
            if last_log.is_none() {
                let names = storage.fs.list(&storage.dir)?;
                let logs = names.iter().filter_map(|name| FileKind::parse(name));
                let logs = logs.filter(|(_, kind)| *kind == FileKind::Wal).map(|(id, _)| id);
                last_log = Some(logs.max().unwrap_or(FileId(0)));
                at.manifest = None; // To be read after this listing.
            }
            attempt += 1;
        }
    }

    /// Opens the sidecars that the writer has replaced.
    fn look_at_filters(&self) {
        let following = &self.following;
        // A check takes one call per segment, and must not delay `catch_up`.
        let listing = lock(&following.at).dir;
        let dir = listing.stamp.filter(|_| listing.is_settled);
        let replaced = lock(&following.filters).replaced(&self.shared.storage, &self.shared.live(), dir);
        if !replaced.is_empty() {
            self.reopen_filters(&replaced);
        }
    }

    /// Reads these sidecars again.
    fn reopen_filters(&self, ids: &BTreeSet<FileId>) {
        let reopened = |live: &Arc<LiveSet>| {
            let renewed = |s: &LiveSegment| LiveSegment {
                sidecar: Some(self.shared.storage.unopened_sidecar(&s.meta)),
                ..s.clone()
            };
            Some(live.replaced(live.segments().filter(|s| ids.contains(&s.meta.id)).map(renewed).collect()))
        };
        self.shared.change_live(reopened, |_| {});
        self.filters.queue_unverified();
    }

    /// One pass over the manifest and the logs. After an error the view is as before, or as a new manifest
    /// says without all of its logs.
    fn advance(&self, versions: &Arc<Versions>, at: &mut Position, manifest: Option<Stamp>) -> Result<()> {
        let storage = &self.shared.storage;
        let changed = if manifest.is_some() && manifest == at.manifest {
            None
        } else {
            let state = read_version(storage, versions, &mut at.tail, manifest)?;
            let version = versions.hold(state.next_id.0)?;
            Some((state, version))
        };
        let state = changed.as_ref().map_or(&at.state, |(state, _)| state);
        let (now, stamp) = (Instant::now(), storage.fs.stamp(&storage.dir)?);
        let since = if stamp == at.dir.stamp { at.dir.since } else { now };
        let is_known = changed.is_none() && stamp == at.dir.stamp && at.dir.is_settled;
        let names = if is_known { Vec::new() } else { storage.fs.list(&storage.dir)? };
        if state.log_floor < at.state.log_floor {
            // The writer took back an edit that it could not sync, so dropped logs are needed again.
            at.logs = FollowedLogs::none(state);
        }
        let floor = at.logs.floor(state, (!is_known).then_some(&names));
        if let Some(log) = at.logs.first_from(state.log_floor).filter(|log| *log < floor)
            && storage.fs.stamp(&storage.dir.join(MANIFEST))? != manifest
        {
            // Flushed since the manifest was read: without it, visible rows would be gone until the next
            // pass.
            return Err(Error::io(
                IoOp::Read,
                storage.path_of(log, FileKind::Wal),
                ErrorKind::NotFound.into(),
            ));
        }
        at.logs.forget_partial(floor);
        at.logs.read_last(storage, floor)?;
        let new = at.logs.read_new(storage, state, floor, &names)?;
        if state.last_seq < self.shared.visible()
            && let Some(problem) = new.problem
        {
            return Err(problem); // Without its logs, this version would be older than what is visible.
        }
        let opened = match &changed {
            Some((state, _)) => self.open_new_segments(state, &names)?,
            None => Vec::new(),
        };
        let is_coarse = stamp.is_some_and(|stamp| stamp.changed % 1_000_000_000 == 0);
        let tick = if is_coarse { COARSE_TICK } else { CLOCK_TICK };
        let is_settled = !new.is_pending && now.saturating_duration_since(since) >= tick;
        at.dir = Listing { stamp, since, is_settled: is_known || is_settled };
        if changed.is_none() && new.logs.is_empty() {
            self.shared.show_at_least(at.logs.last_seq());
            return new.problem.map_or(Ok(()), Err);
        }
        let gone = at.logs.extend(new.logs, state, floor);
        match changed {
            None => self.show(at, Vec::new())?,
            Some((state, version)) => {
                at.state = state;
                self.show(at, opened)?;
                (at.version, at.manifest) = (version, manifest);
                self.filters.queue_unverified();
            }
        }
        // Freeing a full memtable takes a tenth of a second, so another thread does it.
        self.shared.control.lock().retired.extend(gone);
        self.shared.wake_workers();
        new.problem.map_or(Ok(()), Err)
    }

    /// Opens the segments of a new version that the view does not have.
    fn open_new_segments(&self, state: &ManifestState, names: &[String]) -> Result<Vec<LiveSegment>> {
        let (live, recovery) = (self.shared.live(), Recovery { storage: &self.shared.storage, names });
        let known: BTreeMap<FileId, u64> = live.segments().map(|s| (s.meta.id, s.meta.digest)).collect();
        let mut new = state.clone();
        new.segments.retain(|id, meta| known.get(id) != Some(&meta.digest));
        Ok(recovery.open_segments(&new)?.segments().cloned().collect())
    }

    /// Makes what was read visible. `at.version` is still the current view's.
    fn show(&self, at: &Position, opened: Vec<LiveSegment>) -> Result<()> {
        let mut memtables = at.logs.memtables();
        if memtables.is_empty() {
            memtables.push(Arc::new(Memtable::new(self.shared.storage.options.memtable_bytes)?));
        }
        let active = memtables.remove(0);
        let stays = |s: &LiveSegment| {
            let meta = at.state.segments.get(&s.meta.id).filter(|meta| meta.digest == s.meta.digest)?;
            Some(if meta.place == s.meta.place { s.clone() } else { s.at(meta.place) })
        };
        let found = Cell::new((false, 0));
        let next = |before: &Arc<LiveSet>| {
            for gone in before.segments().filter(|s| stays(s).is_none()) {
                gone.file.hold(Arc::clone(&at.version) as _);
            }
            let live = LiveSet::new(before.segments().filter_map(stays).chain(opened.iter().cloned()));
            found.set((at.logs.reach_back(&live), at.logs.last_seq().max(live.max_seq())));
            Some(live)
        };
        self.shared.change_live(next, |view| {
            let (logs_reach_back, visible) = found.get();
            // Lower than before only if the last log had an operation that failed in the writer. Then the
            // number moves first as well.
            self.shared.show(visible);
            (view.active, view.immutable, view.logs_reach_back) = (active, memtables, logs_reach_back);
        });
        Ok(())
    }
}

/// The manifest's current state. A copy of the store in its place, such as a checkpoint, has the same header,
/// but other logs, and its writer does not see this follower's locks.
pub(crate) fn read_version(
    storage: &Storage,
    versions: &Versions,
    tail: &mut ManifestTail,
    manifest: Option<Stamp>,
) -> Result<ManifestState> {
    let state = tail.read(&*storage.fs, &storage.dir, manifest)?;
    check_levels(state, &storage.dir)?;
    let locked = storage.fs.stamp(&storage.dir.join(LOCK))?.map(|stamp| stamp.file);
    if state.header == storage.header && locked == versions.file {
        Ok(state.clone())
    } else {
        Err(replaced(storage))
    }
}

fn replaced(storage: &Storage) -> Error {
    let what = "another store has replaced the one that was opened: open it again".into();
    Error::NotAStore { path: storage.dir.clone(), what }
}

/// Repeats an attempt that failed because the manifest changed.
fn read_once<T>(storage: &Storage, mut attempt: impl FnMut(Option<Stamp>) -> Result<T>) -> Result<T> {
    let path = storage.dir.join(MANIFEST);
    for _ in 1..ATTEMPTS {
        let manifest = storage.fs.stamp(&path)?;
        let outcome = attempt(manifest);
        if outcome.is_ok() || storage.fs.stamp(&path)? == manifest {
            return outcome;
        }
    }
    attempt(storage.fs.stamp(&path)?)
}
