//! What tells a keyspace from all others, also from later ones with its name.

use super::Space;
use crate::sync::atomic::{AtomicBool, Ordering};

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
}

impl KeyspaceId {
    /// A keyspace that exists.
    pub fn new(name: String, space: Space, store: u64) -> Self {
        KeyspaceId { name, space, store, is_dropped: AtomicBool::new(false) }
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
