//! Publishes a guard.

use super::lineage::{Lineage, Mark};
use super::state::{self, BYTES_MAX, FILTERS, FilterRef, Filters, LATEST, STATES, State, number_in, object};
use crate::error::{Error, Result};
use crate::generation::millis;
use crate::parallel::{self, AT_ONCE};
use crate::publisher::{CLOCK_TOLERANCE, TakeOver};
use crate::remote::{Created, Remote};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use sidebloom::guard::{Guard, GuardImage};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

/// A refresh that switches over while an image is read makes its files go away; then another image is taken.
const ATTEMPTS: usize = 3;

/// How many states of this publisher may be found under the next numbers: each is one whose answer was lost.
const OWN_STATES_MAX: usize = 64;

/// What was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardPublished {
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
    remote: Remote,
    lineage: Lineage,
    guard_id: u64,
    /// Tells this publisher from any other.
    writer: u64,
    /// The number of the newest state.
    number: u64,
    /// The newest state, if what it names is known to be that of this guard.
    last: Option<State>,
    /// The state of another publisher, after which this one stops: its number and its writer.
    fenced: Option<(u64, u64)>,
}

impl GuardPublisher {
    /// Publishes from the place's newest state on. With [`TakeOver::Yes`] also if another directory has published that: its publisher is
    /// [fenced](Error::Fenced) when it next publishes. The guard then has to be right: a copy that lacks keys denies them to all
    /// readers. Refresh it first.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the newest state was not published from the guard's directory, or is of another guard; the errors of the bucket,
    /// and of [`Guard::image`].
    pub fn new(guard: &Guard, remote: Remote, take_over: TakeOver) -> Result<Self> {
        let lineage = Lineage::read(guard.path(), remote.url())?;
        let guard_id = guard.image()?.guard_id()?;
        let foreign = |what: String| Error::Foreign { url: remote.url().to_owned(), what };
        let newest = state::newest(&remote)?.map(|found| found.state);
        let number = newest.as_ref().map_or(lineage.number(), |newest| newest.number);
        let is_own = |of: &State| lineage.ends_with(Mark { writer: of.writer, number: of.number });
        let last = match newest {
            Some(newest) if newest.guard_id != guard_id => return Err(another_guard(&remote)),
            Some(newest) if is_own(&newest) => Some(newest),
            Some(_) if take_over == TakeOver::No => {
                return Err(foreign(format!(
                    "state {number} of this guard, which was not published from this directory: if the guard is right, because it has been \
                     refreshed, take over"
                )));
            }
            _ => None,
        };
        let (guard, writer) = (guard.clone(), sidebloom_filter::hash::random_u64());
        Ok(GuardPublisher { guard, remote, lineage, guard_id, writer, number, last, fenced: None })
    }

    fn check_fenced(&self) -> Result<()> {
        match self.fenced {
            Some((generation, writer)) => {
                let (url, writer) = (self.remote.url().to_owned(), format!("{writer:016x}"));
                Err(Error::Fenced { url, generation, writer })
            }
            None => Ok(()),
        }
    }

    /// Publishes the guard as it is: every change before this call. If nothing has changed, readers learn that it was so up to now.
    ///
    /// # Errors
    /// [`Error::Fenced`], now and ever after, if another publisher has published. [`Error::ClockSkew`] if the state is published, but readers
    /// cannot trust its time. After an error of the bucket it is unknown whether it is, and the next call publishes a later one. The
    /// errors of [`Guard::image`].
    pub fn publish(&mut self) -> Result<GuardPublished> {
        self.check_fenced()?;
        // Read first: once a suspension is over, the state must have the keys that ended it.
        let suspended = self.guard.is_suspended();
        let as_of_ms = millis(SystemTime::now());
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
        Ok(GuardPublished { number, filters: uploaded.len() as u64, bytes: uploaded.iter().sum() })
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
            // Replaces what a collection may have been about to remove.
            parallel::for_each(&files, |(name, bytes): &(String, Bytes)| {
                self.remote.put(name, bytes.clone())
            })?;
        }
        Ok((filters, uploaded))
    }

    /// Checks that the newest state is there. Otherwise it was collected together with some that came after it: their numbers are free again,
    /// and creating one of them would fence nobody. Collections go from the oldest on, so nothing after a state that is there was removed.
    fn check_newest(&mut self) -> Result<()> {
        if self.number > 0
            && state::read(&self.remote, self.number)?.is_none()
            && let Some(theirs) = state::newest(&self.remote)?
        {
            self.fenced = Some((theirs.state.number, theirs.state.writer));
        }
        self.check_fenced()
    }

    /// Creates the next state. Returns its number.
    fn create(&mut self, mut state: State) -> Result<u64> {
        self.check_newest()?;
        for _ in 0..OWN_STATES_MAX {
            let number = self.number.checked_add(1).ok_or_else(|| self.no_number())?;
            state.number = number;
            let mark = Mark { writer: self.writer, number };
            self.lineage.intend(mark)?;
            let (name, encoded) = (object(number), state.encode());
            if encoded.len() as u64 > BYTES_MAX {
                let what =
                    format!("{} bytes, more than {BYTES_MAX}: the guard has too many filters", encoded.len());
                return Err(Error::damaged(self.remote.object(&name), 0, what));
            }
            let found = match self.remote.create(&name, encoded)? {
                Created::Yes => None,
                Created::Exists => Some(state::read(&self.remote, number)?.ok_or_else(|| {
                    let what = "it was created by somebody and is gone".into();
                    Error::Bucket { op: "create", object: self.remote.object(&name), what }
                })?),
            };
            match found.map(|found| found.state.writer) {
                None => {
                    self.number = number;
                    self.last = Some(state);
                    self.lineage.confirm(mark)?;
                    self.remote.put(LATEST, Bytes::from(format!("{number:020}")))?;
                    return Ok(number);
                }
                // An earlier attempt, whose answer was lost.
                Some(writer) if writer == self.writer => self.number = number,
                Some(writer) => {
                    self.fenced = Some((number, writer));
                    self.check_fenced()?;
                }
            }
        }
        Err(self.no_number())
    }

    /// Every number after the newest is taken.
    fn no_number(&self) -> Error {
        Error::Endless { url: self.remote.url().to_owned(), from: self.number }
    }

    /// Compares this machine's clock with the time that the bucket gave the state.
    fn check_clock(&self, number: u64) -> Result<()> {
        let modified = SystemTime::from(self.remote.head(&object(number))?.last_modified);
        let now = SystemTime::now();
        let skew = now.duration_since(modified).or_else(|_| modified.duration_since(now)).unwrap_or_default();
        match skew > CLOCK_TOLERANCE {
            true => {
                Err(Error::ClockSkew { url: self.remote.url().to_owned(), skew, tolerance: CLOCK_TOLERANCE })
            }
            false => Ok(()),
        }
    }

    /// Removes states that were replaced at least `min_age` before the newest one was published, from the oldest on, and filters that no other
    /// state names and that are as old. `min_age` must exceed the time that a publication takes. A reader that has an older state finds its
    /// way to the newest one. Returns how many objects were removed.
    ///
    /// # Errors
    /// [`Error::Fenced`]; the errors of the bucket; [`Error::Damaged`] for a state that cannot be read, after which nothing is removed.
    pub fn collect(&mut self, min_age: Duration) -> Result<u64> {
        self.check_fenced()?;
        let states = self.remote.list(STATES)?;
        let numbered = states
            .iter()
            .filter_map(|(name, meta)| Some((number_in(name)?, SystemTime::from(meta.last_modified))));
        let numbered: BTreeMap<u64, SystemTime> = numbered.collect();
        // By the bucket's clock alone.
        let Some(now) = numbered.get(&self.number).copied() else { return Ok(0) };
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age >= min_age);
        let is_replaced = |number: u64| {
            let next = numbered.range(number..).nth(1);
            number < self.number && next.is_some_and(|(_, at)| is_old(*at))
        };
        let gone: Vec<u64> = numbered.keys().copied().take_while(|number| is_replaced(*number)).collect();
        let mut named = HashSet::new();
        for &number in numbered.keys().skip(gone.len()) {
            if let Some(found) = state::read(&self.remote, number)? {
                named.extend(found.state.filters.values().flatten().map(FilterRef::object));
            }
        }
        let filters = self.remote.list(FILTERS)?;
        let unnamed = filters
            .into_iter()
            .filter(|(name, meta)| !named.contains(name) && is_old(meta.last_modified.into()));
        // States first: what is left of an interrupted collection names nothing that is gone.
        let names = gone.iter().map(|number| object(*number)).chain(unnamed.map(|(name, _)| name));
        let mut removed = 0;
        for name in names {
            self.remote.remove(&name)?;
            removed += 1;
        }
        Ok(removed)
    }
}

/// The error for a place that has another guard.
pub(super) fn another_guard(remote: &Remote) -> Error {
    let what = "another guard: publish each guard under a URL of its own".to_owned();
    Error::Foreign { url: remote.url().to_owned(), what }
}

fn read(image: &GuardImage, number: u64) -> Result<Option<Bytes>> {
    let Some(file) = image.open_filter(number)? else { return Ok(None) };
    let len = usize::try_from(file.len()?).map_err(|_| Error::damaged("a filter", 0, "it is too large"))?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Some(bytes.into()))
}
