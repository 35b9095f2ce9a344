//! Reads the catalog: when a store is opened, when somebody asks for a keyspace, and in a follower.

use super::catalog::{CatalogRow, CatalogState, name_bounds, name_in, name_key, state_key};
use crate::direction::Direction;
use crate::engine::read::Reader;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::key::without_head;
use crate::segment::Access;
use std::ops::Bound;
use std::sync::Arc;

/// Reads the catalog when a store is opened. What cannot be read is reported, and read again when somebody
/// asks for a keyspace.
pub(crate) fn load(shared: &Arc<Shared>) {
    if let Err(error) = Catalog::new(shared).load() {
        tracing::warn!(%error, "cannot read the names and options of keyspaces; their segments get the store's options");
    }
}

/// In a store that another process writes: notices keyspaces that were created, changed or dropped.
///
/// # Errors
/// The errors of reading.
pub(crate) fn refresh(shared: &Arc<Shared>) -> Result<()> {
    let keyspaces = &shared.storage.keyspaces;
    if !keyspaces.is_due(shared.visible()) {
        return Ok(());
    }
    let catalog = Catalog::new(shared);
    if keyspaces.version() == Some(catalog.state()?.version) { Ok(()) } else { catalog.load() }
}

/// The catalog's rows.
pub(super) struct Catalog {
    reader: Reader,
}

impl Catalog {
    pub fn new(shared: &Arc<Shared>) -> Self {
        Catalog { reader: Reader::new(Arc::clone(shared)) }
    }

    fn decode(&self, name: &str, value: &[u8]) -> Result<CatalogRow> {
        CatalogRow::decode(value, name, &self.reader.storage().dir)
    }

    pub fn row(&self, name: &str) -> Result<Option<CatalogRow>> {
        let value = self.reader.get(&name_key(name))?;
        value.map(|value| self.decode(name, &value)).transpose()
    }

    pub fn state(&self) -> Result<CatalogState> {
        let Some(value) = self.reader.get(&state_key())? else { return Ok(CatalogState::NEW) };
        let dir = &self.reader.storage().dir;
        CatalogState::decode(&value)
            .ok_or_else(|| Error::corruption(dir, 0, "the number of the next keyspace is invalid"))
    }

    /// The rows of all names, in order.
    pub fn rows(&self) -> Result<Vec<(String, CatalogRow)>> {
        let (view, seq) = self.reader.snapshot();
        let (first, end) = name_bounds();
        let (lower, upper) = (Bound::Included(&*first), Bound::Excluded(&*end));
        let mut merge = view.merge(seq, Direction::Forward, lower, upper, Access::Range);
        let mut rows = Vec::new();
        while merge.advance_visible()? {
            let stored = merge.key().to_vec();
            let Some(name) = name_in(&stored) else {
                let key = without_head(&stored).escape_ascii();
                let what = format!("the catalog of keyspaces has a row with the invalid key \"{key}\"");
                return Err(Error::corruption(&self.reader.storage().dir, 0, what));
            };
            rows.push((name.to_owned(), self.decode(name, merge.value())?));
        }
        Ok(rows)
    }

    fn load(&self) -> Result<()> {
        let version = self.state()?.version;
        self.reader.storage().keyspaces.replace(self.rows()?, version);
        Ok(())
    }
}
