//! The keyspace that the rows of a harness are in: the default one, or one among others. Its rows may expire,
//! or it may have a window of time.

use crate::support::Rng;
use sidebloom::{Db, Error, Keyspace, KeyspaceOptions, Result};
use std::time::Duration;

/// How long the rows of a harness live if it does not wait for their end.
pub const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How long rows live that do not say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Unlimited,
    ExpireAfter(Duration),
    Window(Duration),
}

/// The name of the keyspace, `None` for the default one, and its rows' lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home(Option<&'static str>, Lifetime);

impl Home {
    pub fn random(rng: &mut Rng) -> Self {
        Home(*rng.pick(&[None, Some("rows")]), Lifetime::Unlimited)
    }

    /// A keyspace whose rows live so long: it expires them, or has a window.
    pub fn random_of(rng: &mut Rng, lifetime: Duration) -> Self {
        let lives = [Lifetime::ExpireAfter(lifetime), Lifetime::Window(lifetime), Lifetime::Window(lifetime)];
        Home(Some("rows"), *rng.pick(&lives))
    }

    /// A named one for every other seed.
    pub fn of_seed(seed: u64) -> Self {
        match seed % 8 {
            0 => Home(Some("rows"), Lifetime::Unlimited),
            2 | 6 => Home(Some("aging"), Lifetime::ExpireAfter(LONG)),
            4 => Home(Some("recent"), Lifetime::Window(LONG)),
            _ => Home(None, Lifetime::Unlimited),
        }
    }

    /// Its rows in an open store. In one that is writable and has no such keyspace, creates it.
    pub fn of(self, db: &Db) -> Result<Keyspace> {
        match (self.find(db)?, self.0) {
            (None, Some(name)) => db.create_keyspace(name, self.options()),
            (found, _) => Ok(found.unwrap_or_else(|| Keyspace::clone(db))),
        }
    }

    /// The options of the keyspace.
    pub fn options(self) -> KeyspaceOptions {
        match self.1 {
            Lifetime::Unlimited => KeyspaceOptions::new(),
            Lifetime::ExpireAfter(lifetime) => KeyspaceOptions::new().expire_after(lifetime),
            Lifetime::Window(lifetime) => KeyspaceOptions::new().window(lifetime),
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
