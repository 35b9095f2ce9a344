//! Follows what is published. A directory remembers the newest generation seen, and accepts none before.

use crate::error::{Error, Result};
use crate::find_generation::{Found, Generations};
use crate::generation::Generation;
use crate::newest_seen::NewestSeen;
use std::path::Path;

/// How often a reader retries when a generation is collected while it is being fetched.
const ATTEMPTS: usize = 10;

/// Generations as seen from a directory.
pub(crate) struct Follower<'a> {
    pub generations: &'a Generations,
    pub dir: &'a Path,
}

impl Follower<'_> {
    /// Passes the newest generation to `fetch`. If that fails because the generation was collected, retries,
    /// and tells `fetch` which attempt is the last one.
    pub fn newest<T>(&self, mut fetch: impl FnMut(&mut Found, bool) -> Result<T>) -> Result<(Found, T)> {
        self.take(None, None, &mut fetch)?.ok_or_else(|| self.generations.not_published())
    }

    /// Fetches the newest generation after `own` in the same way; `None` if there is none. If there is no
    /// next one and `may_be_collected`, looks for `own`, since later ones may have been collected with it.
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
                    return Ok(None); // Our own, read again.
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
                .foreign(format!("another {kind} since generation {now}: open it again")));
        }
        self.mark(own).check(&self.generations.remote, own.number, found.number)
    }

    /// The newest generation, never older than one seen from this directory.
    fn find(&self, from: Option<Found>) -> Result<Option<Found>> {
        let Some(found) = self.generations.newest(from)? else { return Ok(None) };
        let mark = self.mark(&found.generation);
        let seen = mark.read()?;
        if found.generation.number >= seen {
            return Ok(Some(found));
        }
        // Another reader may have seen a later one since; then the bucket has it.
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
