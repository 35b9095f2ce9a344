//! fjall's keyspaces.

use super::rows::{AskedKey, SpaceRow};
use super::store::{KeyspaceStore, OpenSpec, SpaceFilter, SpaceSpec};
use crate::engines::fjall::{describe as describe_engine, keyspace_options, wait_for_compactions};
use crate::error::Result;
use crate::settings::BenchSettings;
use fjall::config::{BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;

/// An open store.
pub struct FjallStore {
    db: Database,
    spaces: Vec<Keyspace>,
    settings: BenchSettings,
}

/// The configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "{}; a keyspace with the FilterPolicy of its own that the table names, in all levels, or the default",
        describe_engine(settings)
    )
}

fn options(spec: &SpaceSpec, settings: &BenchSettings) -> KeyspaceCreateOptions {
    let options = keyspace_options(settings);
    match spec.filter {
        SpaceFilter::Off => options.filter_policy(FilterPolicy::disabled()),
        SpaceFilter::Bits(bits) => {
            let bloom = BloomConstructionPolicy::BitsPerKey(bits as f32);
            options.filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bloom)))
        }
        SpaceFilter::Default => options,
    }
}

impl FjallStore {
    /// Opens or creates the store.
    pub fn open(dir: &Path, how: OpenSpec<'_>, specs: &[SpaceSpec]) -> Result<Self> {
        let db = Database::builder(dir).cache_size(how.settings.cache_bytes()).worker_threads(2).open()?;
        let mut store = FjallStore { db, spaces: Vec::new(), settings: how.settings.clone() };
        specs.iter().try_for_each(|spec| store.create(spec))?;
        Ok(store)
    }
}

impl KeyspaceStore for FjallStore {
    fn create(&mut self, spec: &SpaceSpec) -> Result<()> {
        self.spaces.push(self.db.keyspace(&spec.name, || options(spec, &self.settings))?);
        Ok(())
    }

    fn put_all(&mut self, rows: &[SpaceRow]) -> Result<()> {
        let mut batch = self.db.batch();
        for row in rows {
            batch.insert(&self.spaces[row.space], row.key.as_slice(), row.value.as_slice());
        }
        Ok(batch.commit()?)
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
        self.db.delete_keyspace(dropped)?;
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }

    fn finish(&mut self) -> Result<()> {
        self.spaces.iter().try_for_each(|space| space.rotate_memtable_and_wait())?;
        self.db.persist(PersistMode::Buffer)?;
        wait_for_compactions(&self.db);
        Ok(())
    }

    fn compact(&mut self) -> Result<()> {
        Ok(self.spaces.iter().try_for_each(|space| space.major_compact())?)
    }

    fn filter_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.spaces.iter().map(|space| space.tree.filter_size()).sum()))
    }
}
