//! Following what is published: a directory remembers the newest generation that was seen from it, and none
//! before it is taken.

use crate::error::{Error, Result};
use crate::find_generation::{Found, Generations};
use crate::generation::Generation;
use crate::newest_seen::NewestSeen;
use std::path::Path;

/// How often a reader starts again when generations are collected while it fetches one.
const ATTEMPTS: usize = 10;

/// Generations as they are seen from a directory.
pub(crate) struct Follower<'a> {
    pub generations: &'a Generations,
    pub dir: &'a Path,
}

impl Follower<'_> {
    /// The newest generation, and what `fetch` makes of it. If that fails because the generation was
    /// collected, this starts again, and says whether it is the last time.
    pub fn newest<T>(&self, mut fetch: impl FnMut(&mut Found, bool) -> Result<T>) -> Result<(Found, T)> {
        self.take(None, None, &mut fetch)?.ok_or_else(|| self.generations.not_published())
    }

    /// The newest generation after `own`, fetched in the same way; `None` if there is none. `own` is looked
    /// for if the next one is not there and `may_be_collected`: later ones may have been collected together
    /// with it.
    pub fn after<T>(
        &self,
        own: &Generation,
        may_be_collected: impl FnOnce() -> bool,
        mut fetch: impl FnMut(&mut Found, bool) -> Result<T>,
    ) -> Result<Option<(Found, T)>> {
        let next = self.generations.after(own.number)?;
        if next.is_none() && (!may_be_collected() || self.generations.has(own.number)?) {
            return Ok(None);
        }
        self.take(Some(own), next, &mut fetch)
    }

    fn take<T>(
        &self,
        own: Option<&Generation>,
        mut from: Option<Found>,
        fetch: &mut dyn FnMut(&mut Found, bool) -> Result<T>,
    ) -> Result<Option<(Found, T)>> {
        let mut attempt = 1;
        loop {
            let Some(mut found) = self.find(from.take())? else { return Ok(None) };
            if let Some(own) = own {
                self.check(own, &found.generation)?;
                if found.generation.number == own.number {
                    return Ok(None); // It was read anew.
                }
            }
            match fetch(&mut found, attempt == ATTEMPTS) {
                // A later one has been published, and this one collected.
                Err(Error::Expired { .. }) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok(fetched) => {
                    self.mark(&found.generation).raise(found.generation.number)?;
                    return Ok(Some((found, fetched)));
                }
            }
        }
    }

    /// Checks that a generation may replace `own`.
    fn check(&self, own: &Generation, found: &Generation) -> Result<()> {
        if found.id != own.id {
            let (kind, now) = (own.kind(), own.number);
            return Err(self
                .generations
                .foreign(format!("another {kind} since generation {now}: open it anew")));
        }
        self.mark(own).check(&self.generations.remote, own.number, found.number)
    }

    /// The newest generation, which is never older than one that was seen from this directory.
    fn find(&self, from: Option<Found>) -> Result<Option<Found>> {
        let Some(found) = self.generations.newest(from)? else { return Ok(None) };
        let mark = self.mark(&found.generation);
        let seen = mark.read()?;
        if found.generation.number >= seen {
            return Ok(Some(found));
        }
        // Another reader may have seen a later one in between; the bucket has it then.
        let again = self.generations.newest(None)?;
        let of_same =
            again.as_ref().map(|again| &again.generation).filter(|again| again.id == found.generation.id);
        of_same.map_or(Ok(()), |again| mark.check(&self.generations.remote, seen, again.number))?;
        Ok(again)
    }

    fn mark(&self, of: &Generation) -> NewestSeen {
        NewestSeen::new(self.dir, of.owner())
    }
}
