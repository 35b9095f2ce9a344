//! Publishes a guard.

use super::error::{Error, Result};
use super::lineage::{Lineage, Mark};
use super::state::{FILTERS, FilterRef, Filters, LATEST, STATES, State, object};
use super::store::GuardStore;
use bytes::Bytes;
use futures_util::future::try_join_all;
use sha2::{Digest, Sha256};
use sidebloom::guard::{Guard, GuardImage};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Filters that are in memory and uploaded at once.
const AT_ONCE: usize = 8;
/// How far the clocks of this machine and of the store may differ.
pub(super) const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// A refresh that switches over while an image is read makes its files go away; then another image is taken.
const ATTEMPTS: usize = 3;

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The number of the state.
    pub number: u64,
    /// Filters that were uploaded.
    pub filters: u64,
    /// Their size, in bytes.
    pub bytes: u64,
}

/// Publishes the states of a guard. The only one for its place: see the [module](super).
pub struct GuardPublisher {
    guard: Guard,
    store: GuardStore,
    lineage: Lineage,
    guard_id: u64,
    /// Tells this publisher from any other.
    writer: u64,
    /// The number of the newest state.
    number: u64,
    /// The newest state, if what it names is known to be that of this guard.
    last: Option<State>,
    fenced: Option<Error>,
}

impl GuardPublisher {
    /// Publishes from the place's newest state on.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the newest state was not published from the guard's directory, [`Error::Foreign`] if it is of another guard;
    /// [`Error::Store`]; the errors of [`Guard::image`].
    pub fn new(guard: &Guard, store: GuardStore) -> Result<Self> {
        Self::start(guard, store, false)
    }

    /// [`new`](Self::new), also if another directory has published the newest state: its publisher is [fenced](Error::Fenced) when it
    /// next publishes. The guard has to be right: a copy that lacks keys denies them to all readers. Refresh it first.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new), without [`Error::Diverged`].
    pub fn take_over(guard: &Guard, store: GuardStore) -> Result<Self> {
        Self::start(guard, store, true)
    }

    fn start(guard: &Guard, store: GuardStore, takes_over: bool) -> Result<Self> {
        let lineage = Lineage::read(guard.path(), &store.name())?;
        let guard_id = guard.image()?.guard_id()?;
        let newest = store.run(|objects| async move { objects.newest().await })?.map(|(state, _)| state);
        let last = match newest {
            Some(newest) if newest.guard_id != guard_id => {
                return Err(Error::Foreign { object: object(newest.number) });
            }
            Some(newest) => Some(newest),
            None => None,
        };
        let number = last.as_ref().map_or(lineage.number(), |last| last.number);
        let is_own = |last: &State| lineage.ends_with(Mark { writer: last.writer, number: last.number });
        let last = match last {
            Some(last) if is_own(&last) => Some(last),
            Some(last) if !takes_over => return Err(Error::Diverged { number: last.number }),
            _ => None,
        };
        let (guard, writer) = (guard.clone(), sidebloom_filter::hash::random_u64());
        Ok(GuardPublisher { guard, store, lineage, guard_id, writer, number, last, fenced: None })
    }

    /// Publishes the guard as it is: every change before this call. If nothing has changed, readers learn that it was so up to now.
    ///
    /// # Errors
    /// [`Error::Fenced`], now and ever after, if another publisher has published. [`Error::ClockSkew`] if the state is published, but readers
    /// cannot trust its time. After [`Error::Store`] it is unknown whether it is, and the next call publishes a later one. The errors
    /// of [`Guard::image`].
    pub fn publish(&mut self) -> Result<Published> {
        if let Some(fenced) = &self.fenced {
            return Err(fenced.clone());
        }
        // Read first: once a suspension is over, the state must have the keys that ended it.
        let suspended = self.guard.is_suspended();
        let as_of_ms = since_1970(SystemTime::now());
        let mut attempts = 0;
        let (image, filters, uploaded) = loop {
            attempts += 1;
            let image = self.guard.image()?;
            let sent = self.upload(&image);
            match (image.generation()? == self.guard.stats().generation, sent) {
                (true, sent) => break sent.map(|(filters, uploaded)| (image, filters, uploaded))?,
                (false, Err(error)) if attempts == ATTEMPTS => return Err(error),
                (false, Ok((filters, uploaded))) if attempts == ATTEMPTS => break (image, filters, uploaded),
                (false, _) => {}
            }
        };
        let state = State {
            guard_id: self.guard_id,
            number: self.number,
            writer: self.writer,
            as_of_ms,
            suspended,
            settings: image.settings().to_vec(),
            manifest: image.manifest().to_vec(),
            filters,
        };
        let number = self.create(state)?;
        self.check_clock(number)?;
        Ok(Published { number, filters: uploaded.len() as u64, bytes: uploaded.iter().sum() })
    }

    /// Uploads the filters that the last state does not have. Returns all of them, and the sizes of those uploaded.
    fn upload(&self, image: &GuardImage) -> Result<(Filters, Vec<u64>)> {
        // The numbers of one generation are never reused.
        let last = self.last.as_ref().filter(|last| last.settings == image.settings());
        let known = |number: &u64| last.and_then(|last| last.filters.get(number).copied().flatten());
        let mut filters: Filters = image.filters().map(|number| (number, known(&number))).collect();
        let fresh: Vec<u64> =
            filters.iter().filter(|(_, known)| known.is_none()).map(|(number, _)| *number).collect();
        let mut uploaded = Vec::new();
        for numbers in fresh.chunks(AT_ONCE) {
            let mut files = Vec::new();
            for &number in numbers {
                let Some(bytes) = read(image, number)? else { continue };
                let filter = FilterRef { len: bytes.len() as u64, sha256: Sha256::digest(&bytes).into() };
                filters.insert(number, Some(filter));
                uploaded.push(filter.len);
                files.push((filter.object(), bytes));
            }
            self.store.run(|objects| async move {
                // Replaces what a collection may have been about to remove.
                try_join_all(files.into_iter().map(|(name, bytes)| {
                    let objects = objects.clone();
                    async move { objects.put(&name, bytes).await }
                }))
                .await
            })?;
        }
        Ok((filters, uploaded))
    }

    /// Creates the next state. Returns its number.
    fn create(&mut self, mut state: State) -> Result<u64> {
        loop {
            state.number = self.number + 1;
            let (number, bytes) = (state.number, state.encode());
            let mark = Mark { writer: self.writer, number };
            self.lineage.intend(mark)?;
            let found = self.store.run(move |objects| async move {
                match objects.create(&object(number), bytes).await? {
                    true => Ok(None),
                    false => objects.state(number).await,
                }
            })?;
            match found {
                None => {
                    self.number = number;
                    self.last = Some(state);
                    self.lineage.confirm(mark)?;
                    self.store.run(move |objects| async move {
                        objects.put(LATEST, Bytes::from(format!("{number:020}"))).await
                    })?;
                    return Ok(number);
                }
                // An earlier attempt, whose answer was lost.
                Some((earlier, _)) if earlier.writer == self.writer => self.number = number,
                Some((other, _)) => {
                    let fenced = Error::Fenced { number, writer: other.writer };
                    self.fenced = Some(fenced.clone());
                    return Err(fenced);
                }
            }
        }
    }

    /// Compares this machine's clock with the time that the store gave the state.
    fn check_clock(&self, number: u64) -> Result<()> {
        let modified =
            self.store.run(move |objects| async move { objects.modified(&object(number)).await })?;
        let now = SystemTime::now();
        let ahead = now.duration_since(modified).unwrap_or_default();
        let behind = modified.duration_since(now).unwrap_or_default();
        if ahead.max(behind) > CLOCK_TOLERANCE {
            return Err(Error::ClockSkew { seconds: ahead.as_secs_f64() - behind.as_secs_f64() });
        }
        Ok(())
    }

    /// Removes states that are older than `min_age` (but not the newest), and filters that no other state names and that are as old. A
    /// reader that comes back with an older state than these has to find its way from the newest one. Returns how many objects were removed.
    ///
    /// # Errors
    /// [`Error::Fenced`]; [`Error::Store`]; [`Error::Damaged`] for a state that cannot be read, after which nothing is removed.
    pub fn collect(&mut self, min_age: Duration) -> Result<u64> {
        if let Some(fenced) = &self.fenced {
            return Err(fenced.clone());
        }
        let newest = self.number;
        self.store.run(move |objects| async move {
            let states = objects.list(STATES).await?;
            let numbered = states.iter().filter_map(|(name, at)| Some((name.parse::<u64>().ok()?, *at)));
            let numbered: BTreeMap<u64, SystemTime> = numbered.collect();
            // By the clock of the store alone.
            let Some(now) = numbered.get(&newest).copied() else { return Ok(0) };
            let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age >= min_age);
            let (gone, kept): (Vec<_>, Vec<_>) =
                numbered.into_iter().partition(|(number, at)| *number < newest && is_old(*at));
            let mut named = HashSet::new();
            for (number, _) in kept {
                if let Some((state, _)) = objects.state(number).await? {
                    named.extend(state.filters.values().flatten().map(FilterRef::file_name));
                }
            }
            let filters = objects.list(FILTERS).await?;
            let unnamed = filters.into_iter().filter(|(name, at)| !named.contains(name) && is_old(*at));
            // States first: what is left of an interrupted collection names nothing that is gone.
            let names: Vec<String> = gone.iter().map(|(number, _)| object(*number)).collect();
            let names = names.into_iter().chain(unnamed.map(|(name, _)| format!("{FILTERS}/{name}")));
            let mut removed = 0;
            for name in names {
                objects.delete(&name).await?;
                removed += 1;
            }
            Ok(removed)
        })
    }
}

fn read(image: &GuardImage, number: u64) -> Result<Option<Bytes>> {
    let Some(file) = image.open_filter(number)? else { return Ok(None) };
    let len = usize::try_from(file.len()?).map_err(|_| Error::damaged("a filter", 0, "it is too large"))?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(bytes.into()))
}

fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
