//! The contents of a store, and what batches change in them.

use crate::support::Contents;
use sidebloom::{Batch, Range, Result};
use std::collections::BTreeMap;

/// A key and its new value; `None` deletes it.
pub type Change<K = Vec<u8>, V = Vec<u8>> = (K, Option<V>);

pub fn batch_of<K: AsRef<[u8]>, V: AsRef<[u8]>>(changes: &[Change<K, V>]) -> Batch {
    let mut batch = Batch::new();
    add_to(&mut batch, changes);
    batch
}

pub fn add_to<K: AsRef<[u8]>, V: AsRef<[u8]>>(batch: &mut Batch, changes: &[Change<K, V>]) {
    for (key, value) in changes {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        }
    }
}

/// Makes the changes in a model of the contents, in order.
pub fn apply<'a, K, V>(contents: &mut BTreeMap<K, V>, changes: impl IntoIterator<Item = &'a Change<K, V>>)
where
    K: Ord + Clone + 'a,
    V: Clone + 'a,
{
    for (key, value) in changes {
        match value {
            Some(value) => contents.insert(key.clone(), value.clone()),
            None => contents.remove(key),
        };
    }
}

/// All rows of an iterator, from one of its ends.
pub fn rows(range: Range, backwards: bool) -> Result<Contents> {
    let owned = |row: Result<(Vec<u8>, sidebloom::Value)>| row.map(|(key, value)| (key, value.to_vec()));
    if backwards { range.rev().map(owned).collect() } else { range.map(owned).collect() }
}

/// The rows with these keys.
pub fn part_of(contents: &Contents, is_mine: impl Fn(&[u8]) -> bool) -> Contents {
    let mine = contents.iter().filter(|(key, _)| is_mine(key));
    mine.map(|(key, value)| (key.clone(), value.clone())).collect()
}
