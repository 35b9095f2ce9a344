//! Finding the newest generation, without listing the bucket.

use crate::error::{Error, Result};
use crate::generation::{BYTES_MAX, Generation, LATEST};
use crate::remote::Remote;
use std::time::{Duration, Instant, SystemTime};

/// Bytes of a hint: the digits of a number, and some for a later format.
pub(crate) const HINT_BYTES_MAX: u64 = 64;
/// Generations that are looked at one after the other before the hint is asked whether there is a shorter way.
const STEPS_WITHOUT_HINT: u64 = 32;
/// The most of them. Publishers write the hint after each generation, so nobody has to look at as many.
const STEPS_MAX: u64 = 1000;
/// The longest time of looking.
const LONGEST: Duration = Duration::from_secs(300);

/// The way from one generation to the next. It has an end, also if the bucket has another one for every number.
pub(crate) struct Steps {
    from: u64,
    taken: u64,
    begun: Instant,
}

impl Steps {
    pub fn new(from: u64) -> Self {
        Steps { from, taken: 0, begun: Instant::now() }
    }

    /// The number after `number`; `None` if there is none.
    pub fn after(&mut self, remote: &Remote, number: u64) -> Result<Option<u64>> {
        self.taken += 1;
        match self.taken > STEPS_MAX || self.begun.elapsed() > LONGEST {
            true => Err(Error::Endless { url: remote.url().to_owned(), from: self.from }),
            false => Ok(number.checked_add(1)),
        }
    }

    /// Whether it is time to look for a shorter way.
    pub fn ask_hint(&self) -> bool {
        self.taken.is_multiple_of(STEPS_WITHOUT_HINT)
    }
}

/// A generation, and when it was written by the bucket's clock; `None` if there is none of this number.
pub(crate) fn read(remote: &Remote, number: u64) -> Result<Option<(Generation, SystemTime)>> {
    let name = Generation::name_of(number);
    let Some(found) = remote.get_at_most(&name, BYTES_MAX)? else { return Ok(None) };
    let generation = Generation::decode(&found.bytes, &remote.object(&name), number)?;
    Ok(Some((generation, found.meta.last_modified.into())))
}

/// The number that the hint names; `None` if there is no hint.
fn hint(remote: &Remote) -> Result<Option<u64>> {
    let Some(hint) = remote.get_at_most(LATEST, HINT_BYTES_MAX)? else { return Ok(None) };
    let text = std::str::from_utf8(&hint.bytes).ok();
    match text.and_then(|text| text.parse().ok()) {
        Some(number) => Ok(Some(number)),
        None => {
            let what = "it is no number: remove it, and readers will do without";
            Err(Error::damaged(remote.object(LATEST), 0, what))
        }
    }
}

/// The newest generation; `None` if nothing was published. Begins at `from` if that was read already, and otherwise where the hint says. The
/// bucket is listed only if that leads nowhere.
pub(crate) fn newest(remote: &Remote, from: Option<Generation>) -> Result<Option<Generation>> {
    let generation = |number| read(remote, number).map(|found| found.map(|(generation, _)| generation));
    let mut found = from;
    if found.is_none()
        && let Some(number) = hint(remote)?
    {
        found = generation(number)?;
    }
    if found.is_none()
        && let Some(number) = remote.largest("gen", Generation::number_in)?
    {
        found = generation(number)?;
    }
    let Some(mut newest) = found else { return Ok(None) };
    let mut steps = Steps::new(newest.number);
    while let Some(number) = steps.after(remote, newest.number)?
        && let Some(next) = generation(number)?
    {
        newest = next;
        if steps.ask_hint()
            && let Some(number) = hint(remote)?.filter(|number| *number > newest.number)
            && let Some(leap) = generation(number)?
        {
            newest = leap;
        }
    }
    Ok(Some(newest))
}
