//! Finding the newest generation, without listing the bucket.

use crate::error::{Error, Result};
use crate::generation::{BYTES_MAX, Generation, Kind, LATEST, READS};
use crate::remote::Remote;
use bytes::Bytes;
use std::time::{Duration, Instant, SystemTime};

/// Bytes of a hint: a number's digits, and room for later formats.
const HINT_BYTES_MAX: u64 = 64;
/// Generations to step through before asking the hint for a shortcut.
const STEPS_WITHOUT_HINT: u64 = 32;
/// The most steps. Publishers write the hint after each generation, so nobody needs as many.
const STEPS_MAX: u64 = 1000;
/// Time limit of a search.
const LONGEST: Duration = Duration::from_secs(300);

/// The generations of one kind at one place.
#[derive(Debug, Clone)]
pub(crate) struct Generations {
    /// The place of their objects.
    pub remote: Remote,
    pub kind: Kind,
}

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

    /// The error when all numbers are taken.
    pub fn endless(&self, from: u64) -> Error {
        Error::Endless { url: self.remote.url().to_owned(), from }
    }

    /// The generation with a number; `None` if there is none.
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

    /// The newest generation; `None` if nothing was published. Starts from `from` if given, otherwise from
    /// the hint. Lists the bucket only if that fails.
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
            Some(hint) if number_in(&hint).is_none() => {
                Err(Error::damaged(self.remote.object(LATEST), 0, "not a number, and there is no generation"))
            }
            _ => Ok(None),
        }
    }

    /// Refuses the guards of version 1.
    fn refuse_states(&self) -> Result<()> {
        let is_state = |name: &str| name.starts_with("state/").then_some(0);
        if self.kind == Kind::Guard && self.remote.largest("state", is_state)?.is_some() {
            let object = self.remote.object("state");
            Err(Error::UnsupportedVersion { object, found: 1, supported: READS })
        } else {
            Ok(())
        }
    }

    /// The last generation that follows this one without a gap. The search ends even if the bucket has one
    /// for every number.
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

    /// Whether a generation with this number exists.
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

/// The number in a hint.
fn number_in(hint: &[u8]) -> Option<u64> {
    std::str::from_utf8(hint).ok()?.parse().ok()
}
