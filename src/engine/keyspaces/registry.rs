//! The keyspaces of an open store, in memory: what the catalog says, by number.

use super::catalog::CatalogRow;
use crate::error::{Error, Result};
use crate::filter::PrefixSet;
use crate::key::{KeyspaceId, Seq, Space};
use crate::options::{FilterPolicy, KeyspaceOptions};
use crate::segment::KeyspaceName;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The options of most keyspaces, and of what no catalog names.
static DEFAULTS: LazyLock<Arc<KeyspaceOptions>> = LazyLock::new(Arc::default);

/// The keyspaces of an open store.
pub(crate) struct Keyspaces {
    /// Identifies the open store within this process.
    pub store: u64,
    known: Mutex<Known>,
    /// Whether a stored key may have a head.
    has_heads: AtomicBool,
    /// Whether a keyspace has, or had, prefixes of its own.
    has_prefixes: AtomicBool,
    /// Whether a keyspace has, or had, a window.
    have_windows: AtomicBool,
    /// The sequence number up to which a follower has looked for changes.
    looked_at: AtomicU64,
    /// Held while the catalog is changed.
    pub(super) changing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    by_number: BTreeMap<u32, (Arc<KeyspaceId>, Arc<KeyspaceOptions>)>,
    /// The version of the catalog that this has; `None` if it could not be read.
    version: Option<u64>,
    /// How often this was changed.
    changes: u64,
}

impl Known {
    /// After a change that was written with this version of the catalog.
    fn note_written(&mut self, version: u64) {
        // Still without the rest, if that could not be read.
        self.version = self.version.map(|_| version);
        self.changes += 1;
    }
}

impl Keyspaces {
    /// None yet. `store` identifies the open store within this process.
    pub fn new(store: u64) -> Self {
        Keyspaces {
            store,
            known: Mutex::default(),
            has_heads: AtomicBool::new(false),
            has_prefixes: AtomicBool::new(false),
            have_windows: AtomicBool::new(false),
            looked_at: AtomicU64::new(0),
            changing: Mutex::new(()),
        }
    }

    /// Whether a stored key may have a head. If not, the default keyspace has all keys, as they are.
    ///
    /// Loaded after the visible sequence number, it is exact for all rows up to that.
    #[inline]
    pub fn have_heads(&self) -> bool {
        self.has_heads.load(Ordering::Acquire)
    }

    /// Called before a stored key with a head becomes visible.
    #[inline]
    pub fn note_head(&self) {
        if !self.have_heads() {
            self.has_heads.store(true, Ordering::Release);
        }
    }

    /// Whether the catalog may have changed since [`note_looked`](Self::note_looked), now that everything up
    /// to `visible` can be read.
    pub fn is_due(&self, visible: Seq) -> bool {
        self.looked_at.load(Ordering::Acquire) != visible
    }

    /// A follower has looked for changes up to this number.
    pub fn note_looked(&self, visible: Seq) {
        self.looked_at.store(visible, Ordering::Release);
    }

    /// How often this was changed, and the version of the catalog that it has; `None` if it could not be
    /// read. Taken before the catalog is read, so that what was read is not used after a change.
    pub fn now(&self) -> (u64, Option<u64>) {
        let known = lock(&self.known);
        (known.changes, known.version)
    }

    /// Replaces everything with what the catalog has at this version, unless something has changed since
    /// `seen`. Those that are gone were dropped. Without a version, the catalog is read again later.
    pub fn replace(&self, rows: Vec<(String, CatalogRow)>, version: Option<u64>, seen: u64) -> bool {
        let mut known = lock(&self.known);
        if known.changes != seen {
            return false;
        }
        let mut before = std::mem::take(&mut known.by_number);
        for (name, CatalogRow { number, options }) in rows {
            let id = before.remove(&number).map(|(id, _)| id);
            let id = id.unwrap_or_else(|| self.new_id(&name, number));
            id.set_expire_after(options.lifetime());
            known.by_number.insert(number, (id, self.shared(options)));
        }
        before.values().for_each(|(id, _)| id.set_dropped());
        known.version = version;
        known.changes += 1;
        true
    }

    /// The keyspace of a row that was read after `seen`. `None` if something has changed since: it may have
    /// been dropped.
    pub fn open(&self, name: &str, row: CatalogRow, seen: u64) -> Option<Arc<KeyspaceId>> {
        let mut known = lock(&self.known);
        if let Some((id, _)) = known.by_number.get(&row.number) {
            return Some(Arc::clone(id));
        }
        if known.changes != seen {
            return None;
        }
        let id = self.new_id(name, row.number);
        id.set_expire_after(row.options.lifetime());
        known.by_number.insert(row.number, (Arc::clone(&id), self.shared(row.options)));
        known.changes += 1;
        Some(id)
    }

    /// The keyspace of a row that was written with this version of the catalog.
    pub fn set(&self, name: &str, row: CatalogRow, version: u64) -> Arc<KeyspaceId> {
        let mut known = lock(&self.known);
        let id = known.by_number.remove(&row.number).map(|(id, _)| id);
        let id = id.unwrap_or_else(|| self.new_id(name, row.number));
        id.set_expire_after(row.options.lifetime());
        known.by_number.insert(row.number, (Arc::clone(&id), self.shared(row.options)));
        known.note_written(version);
        id
    }

    /// Forgets a keyspace whose row was deleted with this version of the catalog.
    pub fn remove(&self, number: u32, version: u64) {
        let mut known = lock(&self.known);
        known.by_number.remove(&number);
        known.note_written(version);
    }

    fn shared(&self, options: KeyspaceOptions) -> Arc<KeyspaceOptions> {
        if options.prefixes.is_some() {
            self.has_prefixes.store(true, Ordering::Release);
        }
        if options.window.is_some() {
            self.have_windows.store(true, Ordering::Release);
        }
        if options == **DEFAULTS { Arc::clone(&DEFAULTS) } else { Arc::new(options) }
    }

    fn new_id(&self, name: &str, number: u32) -> Arc<KeyspaceId> {
        Arc::new(KeyspaceId::new(name.to_owned(), Space::new(number), self.store))
    }

    /// The number and the name of a keyspace; `None` for the default one and the catalog.
    pub fn name_of(&self, space: Space) -> Option<KeyspaceName> {
        let number = space.number()?;
        let (id, _) = lock(&self.known).by_number.get(&number).cloned()?;
        Some(KeyspaceName { number, name: id.name.clone() })
    }

    /// All keyspaces but the default one, with their names.
    pub fn names(&self) -> Vec<(Space, String)> {
        lock(&self.known).by_number.values().map(|(id, _)| (id.space, id.name.clone())).collect()
    }

    /// The options of a keyspace: those of the store if it is the default one, or not known.
    pub fn options(&self, space: Space) -> Arc<KeyspaceOptions> {
        let known = lock(&self.known);
        let found = space.number().and_then(|number| known.by_number.get(&number));
        found.map_or_else(|| Arc::clone(&DEFAULTS), |(_, options)| Arc::clone(options))
    }

    /// The extractors of a keyspace, if it has its own. Every walk asks, so this takes no lock as long as no
    /// keyspace has any.
    #[inline]
    pub fn own_prefixes(&self, space: Space) -> Option<PrefixSet> {
        if self.has_prefixes.load(Ordering::Acquire) { self.options(space).own_prefixes() } else { None }
    }

    /// The filter policies of the keyspaces that have one of their own.
    pub fn own_policies(&self) -> BTreeMap<Space, FilterPolicy> {
        let known = lock(&self.known);
        let policies = known.by_number.values().map(|(id, options)| (id.space, options.filter_policy));
        policies.filter_map(|(space, policy)| Some((space, policy?))).collect()
    }

    /// The keyspaces whose rows live for a window of time.
    pub fn windows(&self) -> BTreeMap<Space, Duration> {
        if !self.have_windows.load(Ordering::Acquire) {
            return BTreeMap::new();
        }
        let known = lock(&self.known);
        let windows = known.by_number.values().map(|(id, options)| (id.space, options.window));
        windows.filter_map(|(space, window)| Some((space, window?))).collect()
    }

    /// Fails unless the keyspace is one of this store's and was not dropped.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`], [`Error::ForeignKeyspace`].
    pub fn check(&self, id: &KeyspaceId) -> Result<()> {
        let name = || id.name.clone();
        if id.store != self.store {
            return Err(Error::ForeignKeyspace { name: name() });
        }
        if id.is_dropped() { Err(Error::KeyspaceDropped { name: name() }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32) -> CatalogRow {
        CatalogRow { number, options: KeyspaceOptions::new() }
    }

    /// Somebody has read the row of a keyspace, and it is dropped before the handle is made.
    #[test]
    fn a_row_that_was_read_before_a_drop_opens_nothing() {
        let keyspaces = Keyspaces::new(7);
        let id = keyspaces.set("seen", row(1), 1);
        let (seen, _) = keyspaces.now();
        id.set_dropped();
        keyspaces.remove(1, 2);
        assert!(keyspaces.open("seen", row(1), seen).is_none());
        let (seen, _) = keyspaces.now();
        let again = keyspaces.open("seen", row(2), seen).unwrap();
        assert!(!again.is_dropped() && id.is_dropped());
    }

    /// A follower has read the catalog, and somebody opens a keyspace that was created since.
    #[test]
    fn a_catalog_that_was_read_before_an_opening_drops_nothing() {
        let keyspaces = Keyspaces::new(7);
        let (seen, _) = keyspaces.now();
        let created = keyspaces.open("new", row(1), seen).unwrap();
        assert!(!keyspaces.replace(Vec::new(), Some(1), seen));
        assert!(!created.is_dropped());
        let (seen, _) = keyspaces.now();
        assert!(keyspaces.replace(Vec::new(), Some(2), seen) && created.is_dropped());
    }
}
