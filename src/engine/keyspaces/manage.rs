//! Creates, opens, lists, changes and drops keyspaces.

use super::catalog::{CatalogRow, CatalogState, check_name, name_key, state_key};
use super::read_catalog::Catalog;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::key::{KeyspaceId, Space};
use crate::options::{Durability, KeyspaceOptions};
use crate::ranges::DeletedRange;
use crate::sync::lock;
use crate::wal::Batch;
use std::sync::Arc;

impl Engine {
    /// The keyspace of this name, as it is now.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`]; the errors of reading.
    pub fn open_keyspace(&self, name: &str) -> Result<Arc<KeyspaceId>> {
        let keyspaces = &self.shared.storage.keyspaces;
        loop {
            let (seen, _) = keyspaces.now();
            let row = Catalog::new(&self.shared).row(name)?;
            let row = row.ok_or_else(|| Error::UnknownKeyspace { name: name.to_owned() })?;
            if let Some(id) = keyspaces.open(name, row, seen) {
                return Ok(id);
            }
        }
    }

    /// Creates a keyspace.
    ///
    /// # Errors
    /// [`Error::InvalidKeyspaceName`], [`Error::KeyspaceExists`]; the errors of writing, and of its options.
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Arc<KeyspaceId>> {
        check_name(name)?;
        options.validate()?;
        let keyspaces = &self.shared.storage.keyspaces;
        let _changing = lock(&keyspaces.changing);
        let catalog = Catalog::new(&self.shared);
        if catalog.row(name)?.is_some() {
            return Err(Error::KeyspaceExists { name: name.to_owned() });
        }
        let before = catalog.state()?;
        let what = || Error::InvalidArgument("the store has used up the numbers of keyspaces".into());
        let number = before.next.max(self.number_above_all_rows());
        let next = number.checked_add(1).ok_or_else(what)?;
        let row = CatalogRow { number, options };
        let mut batch = Batch::new();
        batch.put_stored(&name_key(name), &row.encode());
        let version = self.change_catalog(CatalogState { next, ..before }, batch, Durability::Os)?;
        Ok(keyspaces.set(name, row, version))
    }

    /// A number that no row in a segment or memtable has, no matter what the catalog says.
    fn number_above_all_rows(&self) -> u32 {
        let view = self.shared.current_view();
        let [level0, sorted @ ..] = view.live.levels();
        let last = sorted.iter().filter_map(|level| level.segments().last());
        let segments = level0.segments().iter().chain(last).chain(view.live.quarantined());
        let of_segments = segments.filter_map(|s| Space::of(&s.meta.largest)?.number());
        let of_memtables = view.memtables().filter_map(|table| table.last_space()?.number());
        of_segments.chain(of_memtables).max().unwrap_or(0).saturating_add(1)
    }

    /// Gives a keyspace other options.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`], [`Error::ForeignKeyspace`]; the errors of writing, and of the options.
    pub fn set_keyspace_options(&self, id: &KeyspaceId, options: KeyspaceOptions) -> Result<()> {
        options.validate()?;
        let keyspaces = &self.shared.storage.keyspaces;
        let _changing = lock(&keyspaces.changing);
        keyspaces.check(id)?;
        let Some(number) = id.space.number() else { return Ok(()) };
        let row = CatalogRow { number, options };
        let mut batch = Batch::new();
        batch.put_stored(&name_key(&id.name), &row.encode());
        let before = Catalog::new(&self.shared).state()?;
        let version = self.change_catalog(before, batch, Durability::Os)?;
        keyspaces.set(&id.name, row, version);
        Ok(())
    }

    /// Drops a keyspace with all its rows, and removes the segments that have no others, unread.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`]; the errors of writing.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        let keyspaces = &self.shared.storage.keyspaces;
        let changing = lock(&keyspaces.changing);
        let id = self.open_keyspace(name)?;
        let before = Catalog::new(&self.shared).state()?;
        let (start, end) = id.space.bounds();
        let mut batch = Batch::new();
        batch.delete_stored(&name_key(name));
        batch.push_range(&DeletedRange { start: start.clone(), end: Some(end.clone()) });
        // From now on, whoever holds the log refuses batches that name it.
        id.set_dropped();
        let changed = self.change_catalog(before, batch, Durability::Sync);
        let version = changed.inspect_err(|_| id.set_kept())?;
        if let Some(number) = id.space.number() {
            keyspaces.remove(number, version);
        }
        drop(changing);
        self.compactor.drop_within(&start, &end)
    }

    /// Writes a change of the catalog, which then has this state and the next version. Returns that. The
    /// caller holds `changing`.
    pub(super) fn change_catalog(
        &self,
        state: CatalogState,
        mut batch: Batch,
        durability: Durability,
    ) -> Result<u64> {
        let version = state.version + 1;
        batch.put_stored(&state_key(), &CatalogState { version, ..state }.encode());
        self.writer.write(batch, durability.max(self.shared.storage.in_force.durability()))?;
        Ok(version)
    }

    /// The names of all keyspaces but the default one, in order.
    ///
    /// # Errors
    /// The errors of reading.
    pub fn keyspace_names(&self) -> Result<Vec<String>> {
        Ok(Catalog::new(&self.shared).rows()?.into_iter().map(|(name, _)| name).collect())
    }
}
