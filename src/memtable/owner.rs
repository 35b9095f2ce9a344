//! Whose keys a memtable has.

use super::Memtable;
use crate::key::{HEADS_START, Space};

impl Memtable {
    /// The keyspace of all its entries; `None` if there are several, or no entries.
    pub fn owner(&self) -> Option<Space> {
        let space = Space::of(self.entries.front()?.key().key())?;
        space.contains(self.entries.back()?.key().key()).then_some(space)
    }

    /// The keyspace of its last key.
    pub fn last_space(&self) -> Option<Space> {
        Space::of(self.entries.back()?.key().key())
    }

    /// Whether a stored key has a head.
    pub fn has_heads(&self) -> bool {
        self.entries.back().is_some_and(|last| last.key().key() >= HEADS_START)
    }
}
