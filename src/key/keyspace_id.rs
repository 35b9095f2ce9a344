//! What tells a keyspace from all others, also from later ones with its name.

use super::expiry::Expiry;
use super::space::Space;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The most bytes of a keyspace's name.
pub const KEYSPACE_NAME_BYTES_MAX: usize = 255;

/// A keyspace of an open store. Batches and handles share it.
#[derive(Debug)]
pub struct KeyspaceId {
    /// Its name.
    pub name: String,
    /// Where its keys are.
    pub space: Space,
    /// Identifies the open store within this process.
    pub store: u64,
    is_dropped: AtomicBool,
    /// How long its rows live unless a put says otherwise, in milliseconds; 0 if they do not expire.
    expire_after: AtomicU64,
}

impl KeyspaceId {
    /// A keyspace that exists.
    pub fn new(name: String, space: Space, store: u64) -> Self {
        KeyspaceId { name, space, store, is_dropped: AtomicBool::new(false), expire_after: AtomicU64::new(0) }
    }

    /// Sets how long its rows live unless a put says otherwise.
    pub fn set_expire_after(&self, lifetime: Option<Duration>) {
        let millis = lifetime.map_or(0, |lifetime| u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX));
        self.expire_after.store(millis, Ordering::Release);
    }

    /// When a row expires whose put does not say.
    #[inline]
    pub fn expiry(&self) -> Option<Expiry> {
        let millis = self.expire_after.load(Ordering::Acquire);
        (millis > 0).then(|| Expiry::after(Duration::from_millis(millis)))
    }

    /// Whether it was dropped.
    #[inline]
    pub fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    /// After a failed attempt to drop it.
    pub fn set_kept(&self) {
        self.is_dropped.store(false, Ordering::Release);
    }

    /// Refuses all uses from now on.
    pub fn set_dropped(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }
}

/// Keyspaces that a batch names, each once. It takes one word as long as there are none.
#[derive(Debug, Clone, Default)]
pub struct NamedKeyspaces(Option<Box<Several>>);

/// In the order of their addresses.
#[derive(Debug, Clone, Default)]
struct Several(Vec<Arc<KeyspaceId>>);

impl NamedKeyspaces {
    /// Adds a keyspace.
    pub fn add(&mut self, id: &Arc<KeyspaceId>) {
        let Several(ids) = &mut **self.0.get_or_insert_default();
        if let Err(place) = ids.binary_search_by_key(&Arc::as_ptr(id), Arc::as_ptr) {
            ids.insert(place, Arc::clone(id));
        }
    }

    /// All of them.
    #[inline]
    pub fn ids(&self) -> &[Arc<KeyspaceId>] {
        self.0.as_ref().map_or(&[], |several| &several.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_batch_names_each_of_its_keyspaces_once() {
        let id = |number| Arc::new(KeyspaceId::new(format!("k{number}"), Space::new(number), 1));
        let ids: Vec<_> = (1..=100).map(id).collect();
        let mut named = NamedKeyspaces::default();
        (0..1000).for_each(|i| named.add(&ids[i * 37 % 100]));
        let names: BTreeSet<_> = named.ids().iter().map(|id| &id.name).collect();
        assert_eq!((named.ids().len(), names.len()), (100, 100));
    }
}
