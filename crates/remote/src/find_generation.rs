//! Finding the newest generation, without listing the bucket.

use crate::error::{Error, Result};
use crate::generation::{BYTES_MAX, Generation, Kind, LATEST, VERSION};
use crate::remote::Remote;
use bytes::Bytes;
use std::time::{Duration, Instant, SystemTime};

/// Bytes of a hint: the digits of a number, and some for a later format.
const HINT_BYTES_MAX: u64 = 64;
/// Generations that are looked at one after the other before the hint is asked whether there is a shorter
/// way.
const STEPS_WITHOUT_HINT: u64 = 32;
/// The most of them. Publishers write the hint after each generation, so nobody has to look at as many.
const STEPS_MAX: u64 = 1000;
/// The longest time of looking.
const LONGEST: Duration = Duration::from_secs(300);

/// The generations of one kind at one place.
#[derive(Debug, Clone)]
pub(crate) struct Generations {
    /// Where their objects are.
    pub remote: Remote,
    pub kind: Kind,
}

/// A generation that was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub generation: Generation,
    /// When it was written, by the bucket's clock.
    pub written: SystemTime,
}

impl Generations {
    pub fn new(remote: &Remote, kind: Kind) -> Self {
        Generations { remote: remote.below(kind.folder()), kind }
    }

    /// The error for something else at this place.
    pub fn foreign(&self, what: String) -> Error {
        Error::Foreign { url: self.remote.url().to_owned(), what }
    }

    /// The error for a place without generations.
    pub fn not_published(&self) -> Error {
        let what = format!("{}: publish one there first", self.kind);
        Error::NotPublished { url: self.remote.url().to_owned(), what }
    }

    /// The error for numbers that are all taken.
    pub fn endless(&self, from: u64) -> Error {
        Error::Endless { url: self.remote.url().to_owned(), from }
    }

    /// The generation of a number; `None` if there is none.
    pub fn read(&self, number: u64) -> Result<Option<Found>> {
        let name = Generation::name_of(number);
        let Some(found) = self.remote.get_at_most(&name, BYTES_MAX)? else { return Ok(None) };
        let generation = Generation::decode(&found.bytes, &self.remote.object(&name), number)?;
        if generation.kind() == self.kind {
            Ok(Some(Found { generation, written: found.meta.last_modified.into() }))
        } else {
            Err(self.foreign(format!("a {}, not a {}", generation.kind(), self.kind)))
        }
    }

    /// The newest generation; `None` if nothing was published. Begins at `from` if that was read already, and
    /// otherwise where the hint says. The bucket is listed only if that leads nowhere.
    pub fn newest(&self, from: Option<Found>) -> Result<Option<Found>> {
        match from {
            Some(found) => self.last_after(found).map(Some),
            None => self.first()?.map(|found| self.last_after(found)).transpose(),
        }
    }

    fn first(&self) -> Result<Option<Found>> {
        let hint = self.hint()?;
        if let Some(number) = hint.as_deref().and_then(number_in)
            && let Some(found) = self.read(number)?
        {
            return Ok(Some(found));
        }
        if let Some(number) = self.remote.largest("gen", Generation::number_in)? {
            return self.read(number);
        }
        self.refuse_states()?;
        match hint {
            Some(hint) if number_in(&hint).is_none() => Err(Error::damaged(
                self.remote.object(LATEST),
                0,
                "it is no number, and there is no generation",
            )),
            _ => Ok(None),
        }
    }

    /// Refuses the guards that version 1 has published.
    fn refuse_states(&self) -> Result<()> {
        let is_state = |name: &str| name.starts_with("state/").then_some(0);
        if self.kind == Kind::Guard && self.remote.largest("state", is_state)?.is_some() {
            let object = self.remote.object("state");
            Err(Error::UnsupportedVersion { object, found: 1, supported: VERSION })
        } else {
            Ok(())
        }
    }

    /// The last one of the generations that follow this one without a gap. It has an end, also if the bucket
    /// has one for every number.
    fn last_after(&self, mut newest: Found) -> Result<Found> {
        let (from, begun, mut steps) = (newest.generation.number, Instant::now(), 0u64);
        loop {
            steps += 1;
            if steps > STEPS_MAX || begun.elapsed() > LONGEST {
                return Err(self.endless(from));
            }
            let Some(next) = self.after(newest.generation.number)? else { return Ok(newest) };
            newest = next;
            if steps.is_multiple_of(STEPS_WITHOUT_HINT)
                && let Some(number) = self.hint()?.as_deref().and_then(number_in)
                && number > newest.generation.number
                && let Some(leap) = self.read(number)?
            {
                newest = leap;
            }
        }
    }

    /// The generation after a number; `None` if there is none.
    pub fn after(&self, number: u64) -> Result<Option<Found>> {
        number.checked_add(1).map_or(Ok(None), |next| self.read(next))
    }

    /// Whether there is a generation of this number.
    pub fn has(&self, number: u64) -> Result<bool> {
        match self.remote.head(&Generation::name_of(number)) {
            Ok(_) => Ok(true),
            Err(Error::Expired { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn hint(&self) -> Result<Option<Bytes>> {
        Ok(self.remote.get_at_most(LATEST, HINT_BYTES_MAX)?.map(|hint| hint.bytes))
    }
}

/// The number that a hint names.
fn number_in(hint: &[u8]) -> Option<u64> {
    std::str::from_utf8(hint).ok()?.parse().ok()
}
