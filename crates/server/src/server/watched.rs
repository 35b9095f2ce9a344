//! What the next transaction of a client depends on.

use super::catalog::Catalog;
use crate::filters::Mark;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Names that one client watches at most, and their length together.
const NAMES_MAX: usize = 1 << 10;
const NAME_BYTES_MAX: usize = 64 << 10;
/// Memory of a name apart from its bytes: its entry in a tree that is two thirds full, and the allocator's
/// rounding.
const ENTRY_BYTES: usize = 112;

/// Names, and what was there when they were watched.
#[derive(Default)]
pub struct Watched {
    marks: BTreeMap<(u8, Vec<u8>), Option<Mark>>,
    name_bytes: usize,
}

impl Watched {
    /// Watches a name from now on, unless it is watched. Returns `false` if there are too many.
    pub fn add(&mut self, catalog: &Catalog, database: u8, name: &[u8]) -> bool {
        let is_full = self.marks.len() == NAMES_MAX || self.name_bytes + name.len() > NAME_BYTES_MAX;
        match self.marks.entry((database, name.to_vec())) {
            Entry::Occupied(_) => true,
            Entry::Vacant(_) if is_full => false,
            Entry::Vacant(entry) => {
                entry.insert(catalog.mark(database, name));
                self.name_bytes += name.len();
                true
            }
        }
    }

    pub fn clear(&mut self) {
        *self = Watched::default();
    }

    /// Whether all is as it was.
    pub fn is_unchanged(&self, catalog: &Catalog) -> bool {
        self.marks.iter().all(|((database, name), mark)| catalog.mark(*database, name) == *mark)
    }

    /// Memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.name_bytes + self.marks.len() * ENTRY_BYTES
    }
}
