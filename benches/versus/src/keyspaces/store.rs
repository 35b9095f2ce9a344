//! The interface of the compared stores.

use super::rows::{AskedKey, SpaceRow};
use crate::error::Result;
use crate::settings::BenchSettings;
use serde::{Deserialize, Serialize};

/// The filters of a keyspace. B-trees have none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpaceFilter {
    /// No filters.
    Off,
    /// Bits per key.
    Bits(f64),
    /// The store's default; in RocksDB, which has none, Bloom with 10 bits per key.
    Default,
}

/// A keyspace to create or to open.
#[derive(Debug, Clone)]
pub struct SpaceSpec {
    /// Its name.
    pub name: String,
    /// Its filters.
    pub filter: SpaceFilter,
}

impl SpaceSpec {
    /// A keyspace with the store's default filters.
    pub fn plain(name: impl Into<String>) -> Self {
        SpaceSpec { name: name.into(), filter: SpaceFilter::Default }
    }
}

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenSpec<'s> {
    /// Sizes of cache and memtables.
    pub settings: &'s BenchSettings,
    /// How many small keyspaces the store has; `None` if it has a few large ones.
    pub small: Option<u64>,
    /// Rows of all keyspaces, at most.
    pub rows: u64,
}

/// An open store. Its keyspaces have numbers in the order in which they were opened.
pub trait KeyspaceStore {
    /// Creates one more keyspace.
    fn create(&mut self, spec: &SpaceSpec) -> Result<()>;

    /// Writes rows of any keyspaces, at once. The operating system has them when this returns.
    fn put_all(&mut self, rows: &[SpaceRow]) -> Result<()>;

    /// Gets each key by a call of its own, and hands its value to `answer`.
    fn get_each(
        &self,
        space: usize,
        asked: &[AskedKey],
        answer: &mut dyn FnMut(&AskedKey, Option<&[u8]>),
    ) -> Result<()>;

    /// Drops the last keyspace, durably.
    fn drop_last(&mut self) -> Result<()>;

    /// Flushes, and waits until nothing is left to compact.
    fn finish(&mut self) -> Result<()>;

    /// Merges each keyspace into one sorted run, or makes the file as small as it can be.
    fn compact(&mut self) -> Result<()>;

    /// Reads filters and indexes into memory, unless opening the store has done so.
    fn warm(&self) -> Result<()> {
        Ok(())
    }

    /// Size of all filters in bytes; `None` without filters.
    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}
