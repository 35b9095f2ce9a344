//! Reads the catalog: when a store is opened, when somebody asks for a keyspace, and in a follower.

use super::catalog::{CatalogRow, CatalogState, name_bounds, name_in, name_key, state_key};
use crate::direction::Direction;
use crate::engine::read::Reader;
use crate::engine::read::view::View;
use crate::engine::shared::Shared;
use crate::engine::storage::Storage;
use crate::error::{Error, Result};
use crate::key::{AsOf, Seq, without_head};
use crate::segment::Access;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Reads the catalog when a store is opened, and warns if that fails: whoever asks for a keyspace reads its
/// row again.
pub(crate) fn load(shared: &Arc<Shared>) {
    if let Err(error) = Catalog::new(shared).load() {
        tracing::warn!(%error, "cannot read the names and options of keyspaces; their segments get the store's options");
    }
}

/// Notes the keyspaces of a view while a store is recovered, before its rows are flushed: their options say
/// how. [`load`] reads the catalog again and warns if that fails.
pub(crate) fn load_recovered(storage: &Storage, view: &View) {
    let (seen, _) = storage.keyspaces.now();
    if view.may_have_heads()
        && let Ok(rows) = rows_in(view, AsOf::seq(Seq::MAX), &storage.dir)
    {
        storage.keyspaces.replace(rows, None, seen);
    }
}

/// In a store that another process writes: notices keyspaces that were created, changed or dropped. If the
/// catalog cannot be read, the keyspaces stay as they are, and a later call tries again.
pub(crate) fn refresh(shared: &Arc<Shared>) {
    let (keyspaces, visible) = (&shared.storage.keyspaces, shared.visible());
    if !keyspaces.is_due(visible) {
        return;
    }
    let catalog = Catalog::new(shared);
    let is_current = |state: CatalogState| keyspaces.now().1 == Some(state.version);
    let outcome = catalog.state().and_then(|state| if is_current(state) { Ok(()) } else { catalog.load() });
    match outcome {
        Ok(()) => keyspaces.note_looked(visible),
        Err(error) => tracing::debug!(%error, "cannot read the names and options of keyspaces"),
    }
}

/// The catalog's rows.
pub(super) struct Catalog {
    reader: Reader,
}

impl Catalog {
    pub fn new(shared: &Arc<Shared>) -> Self {
        Catalog { reader: Reader::new(Arc::clone(shared)) }
    }

    /// What can be read now.
    pub fn snapshot(&self) -> (Arc<View>, AsOf) {
        self.reader.snapshot()
    }

    pub fn row(&self, name: &str) -> Result<Option<CatalogRow>> {
        let value = self.reader.get(&name_key(name))?;
        value.map(|value| CatalogRow::decode(&value, name, &self.reader.storage().dir)).transpose()
    }

    pub fn state(&self) -> Result<CatalogState> {
        let Some(value) = self.reader.get(&state_key())? else { return Ok(CatalogState::NEW) };
        let dir = &self.reader.storage().dir;
        CatalogState::decode(&value)
            .ok_or_else(|| Error::corruption(dir, 0, "the number of the next keyspace is invalid"))
    }

    /// The rows of all names, in order.
    pub fn rows(&self) -> Result<Vec<(String, CatalogRow)>> {
        let (view, as_of) = self.reader.snapshot();
        rows_in(&view, as_of, &self.reader.storage().dir)
    }

    fn load(&self) -> Result<()> {
        let keyspaces = &self.reader.storage().keyspaces;
        loop {
            let (seen, _) = keyspaces.now();
            // Before the rows: if they are newer, the next look reads them again.
            let version = self.state()?.version;
            if keyspaces.replace(self.rows()?, Some(version), seen) {
                return Ok(());
            }
        }
    }
}

/// The rows of all names in a view of the store at `dir`, in order.
fn rows_in(view: &View, as_of: AsOf, dir: &Path) -> Result<Vec<(String, CatalogRow)>> {
    let (first, end) = name_bounds();
    let (lower, upper) = (Bound::Included(&*first), Bound::Excluded(&*end));
    let mut merge = view.merge(as_of, Direction::Forward, lower, upper, Access::Range);
    let mut rows = Vec::new();
    while merge.advance_visible()? {
        let stored = merge.key().to_vec();
        let Some(name) = name_in(&stored) else {
            let key = without_head(&stored).escape_ascii();
            let what = format!("the catalog of keyspaces has a row with the invalid key \"{key}\"");
            return Err(Error::corruption(dir, 0, what));
        };
        rows.push((name.to_owned(), CatalogRow::decode(merge.value(), name, dir)?));
    }
    Ok(rows)
}
