//! Keyspaces whose rows are there, but not those of the catalog: files were damaged.

use super::catalog::{CatalogRow, CatalogState, name_key};
use super::read_catalog::Catalog;
use crate::direction::Direction;
use crate::engine::Engine;
use crate::error::Result;
use crate::key::{KEYSPACE_NAME_BYTES_MAX, Space};
use crate::options::{Durability, KeyspaceOptions};
use crate::segment::Access;
use crate::sync::lock;
use crate::wal::Batch;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

impl Engine {
    /// Gives every keyspace that has rows and no name the one that `known` has for its number, or one made of
    /// that. Their options are those of the store. Returns these names. A catalog that `is_complete`, unless
    /// it is missing, stays as it is.
    ///
    /// # Errors
    /// The errors of reading and writing.
    pub fn restore_keyspace_names(
        &self,
        known: &BTreeMap<u32, String>,
        is_complete: bool,
    ) -> Result<Vec<String>> {
        let _changing = lock(&self.shared.storage.keyspaces.changing);
        let catalog = Catalog::new(&self.shared);
        let (before, rows) = (catalog.state()?, catalog.rows()?);
        if is_complete && before != CatalogState::NEW {
            return Ok(Vec::new());
        }
        let named: BTreeSet<u32> = rows.iter().map(|(_, row)| row.number).collect();
        let mut names: BTreeSet<String> = rows.into_iter().map(|(name, _)| name).collect();
        let (mut batch, mut restored, mut next) = (Batch::new(), Vec::new(), before.next);
        for number in self.numbers_with_rows()? {
            next = next.max(number.saturating_add(1));
            if named.contains(&number) {
                continue;
            }
            let name = free_name(number, known.get(&number).map(String::as_str), &names);
            let row = CatalogRow { number, options: KeyspaceOptions::new() };
            batch.put_stored(&name_key(&name), &row.encode());
            names.insert(name.clone());
            restored.push(name);
        }
        if !restored.is_empty() || next != before.next {
            self.change_catalog(CatalogState { next, ..before }, batch, Durability::Sync)?;
        }
        Ok(restored)
    }

    /// The numbers of the keyspaces that have rows, in order.
    fn numbers_with_rows(&self) -> Result<Vec<u32>> {
        let (view, as_of) = Catalog::new(&self.shared).snapshot();
        let (mut numbers, mut from) = (Vec::new(), Space::new(1).first_key().to_vec());
        loop {
            let lower = Bound::Included(&*from);
            let mut merge = view.merge(as_of, Direction::Forward, lower, Bound::Unbounded, Access::Range);
            if !merge.advance_visible()? {
                return Ok(numbers);
            }
            // No later key belongs to a keyspace that this version knows.
            let Some(space) = Space::of(&merge.key().to_vec()) else { return Ok(numbers) };
            numbers.extend(space.number());
            from = space.bounds().1;
        }
    }
}

/// The name, or one like it that is not taken.
fn free_name(number: u32, known: Option<&str>, taken: &BTreeSet<String>) -> String {
    let known = known.map_or_else(|| format!("keyspace {number}"), str::to_owned);
    let mut name = known.clone();
    for copy in 2u32.. {
        if !taken.contains(&name) {
            break;
        }
        let suffix = format!(" ({copy})");
        let mut end = known.len().min(KEYSPACE_NAME_BYTES_MAX - suffix.len());
        while !known.is_char_boundary(end) {
            end -= 1;
        }
        name = format!("{}{suffix}", known.get(..end).unwrap_or_default());
    }
    name
}
