//! sidebloom's keyspaces.

use super::rows::{AskedKey, SpaceRow};
use super::store::{KeyspaceStore, OpenSpec, SpaceFilter, SpaceSpec};
use crate::engine::EngineKind;
use crate::engines::sidebloom::{SidebloomEngine, describe as describe_engine};
use crate::error::Result;
use crate::settings::BenchSettings;
use sidebloom::{Batch, Db, Error, FilterPolicy, Keyspace, KeyspaceOptions};
use std::path::Path;

/// An open store.
pub struct SidebloomStore {
    db: Db,
    spaces: Vec<Keyspace>,
}

/// The configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "{}; a keyspace with the FilterPolicy of its own that the table names, or the store's",
        describe_engine(EngineKind::Sidebloom, settings)
    )
}

fn options(spec: &SpaceSpec) -> KeyspaceOptions {
    match spec.filter {
        SpaceFilter::Off => KeyspaceOptions::new().filter_policy(FilterPolicy::OFF),
        SpaceFilter::Bits(bits) => KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(bits)),
        SpaceFilter::Default => KeyspaceOptions::new(),
    }
}

impl SidebloomStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, how: OpenSpec<'_>, specs: &[SpaceSpec]) -> Result<Self> {
        let SidebloomEngine(db) = SidebloomEngine::open(EngineKind::Sidebloom, dir, how.settings)?;
        let opened = specs.iter().map(|spec| match db.keyspace(&spec.name) {
            Err(Error::UnknownKeyspace { .. }) => db.create_keyspace(&spec.name, options(spec)),
            opened => opened,
        });
        let spaces = opened.collect::<sidebloom::Result<_>>()?;
        Ok(SidebloomStore { db, spaces })
    }
}

impl KeyspaceStore for SidebloomStore {
    fn create(&mut self, spec: &SpaceSpec) -> Result<()> {
        self.spaces.push(self.db.create_keyspace(&spec.name, options(spec))?);
        Ok(())
    }

    fn put_all(&mut self, rows: &[SpaceRow]) -> Result<()> {
        let mut batch = Batch::new();
        for rows in rows.chunk_by(|one, other| one.space == other.space) {
            let mut of_keyspace = batch.keyspace(&self.spaces[rows[0].space]);
            rows.iter().for_each(|row| of_keyspace.put(&row.key, &row.value));
        }
        Ok(self.db.write(batch)?)
    }

    fn get_each(
        &self,
        space: usize,
        asked: &[AskedKey],
        answer: &mut dyn FnMut(&AskedKey, Option<&[u8]>),
    ) -> Result<()> {
        let space = &self.spaces[space];
        for asked in asked {
            answer(asked, space.get(asked.key)?.as_deref());
        }
        Ok(())
    }

    fn drop_last(&mut self) -> Result<()> {
        let dropped = self.spaces.pop().ok_or("no keyspace to drop")?;
        Ok(self.db.drop_keyspace(dropped.name())?)
    }

    fn finish(&mut self) -> Result<()> {
        self.db.flush()?;
        self.db.wait_for_compaction()?;
        Ok(self.db.warm()?)
    }

    fn compact(&mut self) -> Result<()> {
        self.db.compact()?;
        self.finish()
    }

    fn warm(&self) -> Result<()> {
        Ok(self.db.warm()?)
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.db.stats().levels.iter().map(|level| level.filter_bytes).sum()))
    }
}
