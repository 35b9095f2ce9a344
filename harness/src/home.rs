//! The keyspace that the rows of a harness are in: the default one, or one among others. In the one called
//! `aging`, all rows expire, in a hundred years; `recent` has a window of so long.

use crate::support::Rng;
use sidebloom::{Db, Error, Keyspace, KeyspaceOptions, Result};
use std::time::Duration;

const AGING: &str = "aging";
const RECENT: &str = "recent";
/// How long its rows live.
const LIFETIME: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The name of the keyspace; `None` for the default one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home(Option<&'static str>);

impl Home {
    pub fn random(rng: &mut Rng) -> Self {
        Home(*rng.pick(&[None, Some("rows")]))
    }

    /// A named one for every other seed.
    pub fn of_seed(seed: u64) -> Self {
        Home(
            [Some("rows"), None, Some(AGING), None, Some(RECENT), None, Some(AGING), None][seed as usize % 8],
        )
    }

    /// Its rows in an open store. In one that is writable and has no such keyspace, creates it.
    pub fn of(self, db: &Db) -> Result<Keyspace> {
        match (self.find(db)?, self.0) {
            (None, Some(AGING)) => db.create_keyspace(AGING, KeyspaceOptions::new().expire_after(LIFETIME)),
            (None, Some(RECENT)) => db.create_keyspace(RECENT, KeyspaceOptions::new().window(LIFETIME)),
            (None, Some(name)) => db.create_keyspace(name, KeyspaceOptions::new()),
            (found, _) => Ok(found.unwrap_or_else(|| Keyspace::clone(db))),
        }
    }

    /// Its rows in an open store; `None` if that has no such keyspace.
    pub fn find(self, db: &Db) -> Result<Option<Keyspace>> {
        let Some(name) = self.0 else { return Ok(Some(Keyspace::clone(db))) };
        match db.keyspace(name) {
            Err(Error::UnknownKeyspace { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Its rows in an open store; the default keyspace, which is empty, if that has no such keyspace yet.
    pub fn so_far(self, db: &Db) -> Result<Keyspace> {
        Ok(self.find(db)?.unwrap_or_else(|| Keyspace::clone(db)))
    }

    /// The name of its keyspace, if it has one.
    pub fn name(self) -> Option<&'static str> {
        self.0
    }
}
