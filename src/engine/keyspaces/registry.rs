//! The keyspaces of an open store, in memory: what the catalog says, by number.

use super::catalog::CatalogRow;
use crate::error::{Error, Result};
use crate::key::{KeyspaceId, Seq, Space};
use crate::options::KeyspaceOptions;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The options of most keyspaces, and of what no catalog names.
static DEFAULTS: LazyLock<Arc<KeyspaceOptions>> = LazyLock::new(Arc::default);

/// The keyspaces of an open store.
pub(crate) struct Keyspaces {
    /// Identifies the open store within this process.
    pub store: u64,
    known: Mutex<Known>,
    /// Whether a stored key may have a head.
    has_heads: AtomicBool,
    /// The sequence number up to which a follower has looked for changes.
    looked_at: AtomicU64,
    /// Held while the catalog is changed.
    pub(super) changing: Mutex<()>,
}

#[derive(Default)]
struct Known {
    by_number: BTreeMap<u32, (Arc<KeyspaceId>, Arc<KeyspaceOptions>)>,
    /// The version of the catalog that was read; `None` if it could not be.
    version: Option<u64>,
}

impl Keyspaces {
    /// None yet. `store` identifies the open store within this process.
    pub fn new(store: u64) -> Self {
        Keyspaces {
            store,
            known: Mutex::default(),
            has_heads: AtomicBool::new(false),
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

    /// Whether the catalog may have changed since the last call, now that everything up to `visible` can be
    /// read.
    pub fn is_due(&self, visible: Seq) -> bool {
        self.looked_at.swap(visible, Ordering::AcqRel) != visible
    }

    /// The version of the catalog in memory; `None` if it could not be read yet.
    pub fn version(&self) -> Option<u64> {
        lock(&self.known).version
    }

    /// Replaces everything with what the catalog has at this version. Those that are gone were dropped.
    pub fn replace(&self, rows: impl IntoIterator<Item = (String, CatalogRow)>, version: u64) {
        let mut known = lock(&self.known);
        let mut before = std::mem::take(&mut known.by_number);
        for (name, CatalogRow { number, options }) in rows {
            let id = match before.remove(&number) {
                Some((id, _)) => id,
                None => Arc::new(KeyspaceId::new(name, Space::new(number), self.store)),
            };
            known.by_number.insert(number, (id, shared(options)));
        }
        before.values().for_each(|(id, _)| id.set_dropped());
        known.version = Some(version);
    }

    /// The keyspace of a row of the catalog, at this version.
    pub fn add(&self, name: &str, row: CatalogRow, version: u64) -> Arc<KeyspaceId> {
        let mut known = lock(&self.known);
        known.version = known.version.max(Some(version));
        let id = match known.by_number.remove(&row.number) {
            Some((id, _)) => id,
            None => Arc::new(KeyspaceId::new(name.to_owned(), Space::new(row.number), self.store)),
        };
        known.by_number.insert(row.number, (Arc::clone(&id), shared(row.options)));
        id
    }

    /// The keyspace with this number, if it is known.
    pub fn get(&self, number: u32) -> Option<Arc<KeyspaceId>> {
        lock(&self.known).by_number.get(&number).map(|(id, _)| Arc::clone(id))
    }

    /// Forgets a keyspace that was dropped.
    pub fn remove(&self, number: u32, version: u64) {
        let mut known = lock(&self.known);
        known.version = known.version.max(Some(version));
        known.by_number.remove(&number);
    }

    /// The options of a keyspace: those of the store if it is the default one, or not known.
    pub fn options(&self, space: Space) -> Arc<KeyspaceOptions> {
        let known = lock(&self.known);
        let found = space.number().and_then(|number| known.by_number.get(&number));
        found.map_or_else(|| Arc::clone(&DEFAULTS), |(_, options)| Arc::clone(options))
    }

    /// The keyspaces with a filter policy of their own.
    pub fn with_own_policy(&self) -> Vec<(Space, Arc<KeyspaceOptions>)> {
        let known = lock(&self.known);
        let own = known.by_number.values().filter(|(_, options)| options.filter_policy.is_some());
        own.map(|(id, options)| (id.space, Arc::clone(options))).collect()
    }

    /// Fails unless the keyspace is one of this store's and was not dropped.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`], [`Error::ForeignKeyspace`].
    pub fn check(&self, id: &KeyspaceId) -> Result<()> {
        let name = || id.name.clone();
        match () {
            () if id.store != self.store => Err(Error::ForeignKeyspace { name: name() }),
            () if id.is_dropped() => Err(Error::KeyspaceDropped { name: name() }),
            () => Ok(()),
        }
    }
}

fn shared(options: KeyspaceOptions) -> Arc<KeyspaceOptions> {
    if options == **DEFAULTS { Arc::clone(&DEFAULTS) } else { Arc::new(options) }
}
