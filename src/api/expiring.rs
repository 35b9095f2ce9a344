//! Rows that expire: [`Keyspace::put_with`], [`Keyspace::time_to_live`] and [`Keyspace::touch`].

use super::keyspace::Keyspace;
use crate::error::Result;
use crate::key::Expiry;
use crate::wal::Batch;
use std::time::Duration;

/// How long a row lives. See [`Keyspace::time_to_live`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeToLive {
    /// There is no such row: it has expired, was deleted, or never existed.
    Missing,
    /// The row does not expire.
    Unlimited,
    /// The row expires this much later, to the millisecond.
    Remaining(Duration),
}

impl Keyspace {
    /// Sets `key` to `value` until it expires. From that moment on, the row is as if deleted: reads do not
    /// see it, [`insert_new`](Self::insert_new) inserts it again, and a compaction removes it.
    ///
    /// ```
    /// # fn main() -> sidebloom::Result<()> {
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// # let db = sidebloom::Db::open(dir.path().join("sessions.db"))?;
    /// use sidebloom::{Expiry, TimeToLive};
    /// use std::time::Duration;
    ///
    /// db.put_with("session 7", "ann", Expiry::after(Duration::from_secs(3600)))?;
    /// assert!(matches!(db.time_to_live("session 7")?, TimeToLive::Remaining(_)));
    /// db.touch("session 7", Expiry::never())?;
    /// assert_eq!(db.time_to_live("session 7")?, TimeToLive::Unlimited);
    /// # Ok(()) }
    /// ```
    ///
    /// The store's clock is the system's, but it never runs backwards: if the system's clock is set back,
    /// it stands still until that has caught up.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an expiry that is not possible; the
    /// errors of [`put`](Self::put).
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, expiry: Expiry) -> Result<()> {
        let mut batch = Batch::new();
        self.in_batch(&mut batch).put_with(key, value, expiry);
        self.write(batch)
    }

    /// How long the row of `key` lives.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub fn time_to_live(&self, key: impl AsRef<[u8]>) -> Result<TimeToLive> {
        let (entry, now) = self.entry(key.as_ref())?;
        Ok(match entry.map(|entry| entry.kind.expiry()) {
            None => TimeToLive::Missing,
            Some(None) => TimeToLive::Unlimited,
            Some(Some(time)) => TimeToLive::Remaining(time.saturating_since(now)),
        })
    }

    /// Sets when the row of `key` expires, and keeps its value. Returns whether there is one.
    ///
    /// # Errors
    /// The errors of [`insert_new_with`](Self::insert_new_with).
    pub fn touch(&self, key: impl AsRef<[u8]>, expiry: Expiry) -> Result<bool> {
        let mut exists = false;
        self.replace(key.as_ref(), 0, Some(expiry), |current| {
            exists = current.is_some();
            current.map(Some)
        })?;
        Ok(exists)
    }
}
