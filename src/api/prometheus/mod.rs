//! Metrics in the text format of Prometheus, version 0.0.4.

mod families;
mod family;
mod text;

use self::families::FAMILIES;
use self::text::{StoreMetrics, write_family};
use super::handle::Db;
use super::keyspace_stats::KeyspaceStats;
use super::stats::Stats;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;

/// The metrics of one or more stores of a process, as one text for a scraper. Those of a store have the label
/// `store` with its name, unless it is empty.
///
/// docs/metrics.md lists all metrics. Counters start at 0 when a store is opened.
///
/// ```
/// # fn main() -> sidebloom::Result<()> {
/// # let dir = tempfile::tempdir()
/// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
/// use sidebloom::{Db, Exposition};
///
/// let (users, seen) = (Db::open(dir.path().join("users"))?, Db::open(dir.path().join("seen"))?);
/// let mut metrics = Exposition::new();
/// metrics.add_store("users", &users)?;
/// metrics.add_store("seen", &seen)?;
/// let body = metrics.to_string(); // with Content-Type: Exposition::CONTENT_TYPE
/// assert!(body.contains("sidebloom_memtables_waiting{store=\"seen\"} 0\n"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Exposition {
    stores: Vec<StoreMetrics>,
}

impl Exposition {
    /// The media type of the text, for an HTTP response.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Without stores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the current statistics of a store, and of its keyspaces.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is a store of this name.
    pub fn add_store(&mut self, name: impl Into<String>, db: &Db) -> Result<()> {
        self.add(name, db.stats(), db.keyspace_stats())
    }

    /// Adds statistics that were taken before. `keyspaces` are those of
    /// [`Db::keyspace_stats`](crate::Db::keyspace_stats).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if there is a store of this name.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        stats: Stats,
        keyspaces: BTreeMap<String, KeyspaceStats>,
    ) -> Result<()> {
        let name = name.into();
        if self.stores.iter().any(|store| store.name == name) {
            let what = format!("there are metrics of a store \"{}\" already", name.escape_default());
            return Err(Error::InvalidArgument(what));
        }
        self.stores.push(StoreMetrics { name, stats, keyspaces });
        Ok(())
    }
}

impl fmt::Display for Exposition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        FAMILIES.iter().try_for_each(|family| write_family(family, &self.stores, out))
    }
}

impl Stats {
    /// Writes the store's metrics as Prometheus text, without those of keyspaces. [`Exposition`] has these as
    /// well, and several stores.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_prometheus(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let only = StoreMetrics { name: String::new(), stats: self.clone(), keyspaces: BTreeMap::new() };
        write!(out, "{}", Exposition { stores: vec![only] })
    }
}

#[cfg(test)]
mod tests;
