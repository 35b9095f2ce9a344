//! The contents of a store, and how batches change them.

use crate::support::Contents;
use sidebloom::{Batch, Durability, Keyspace, KeyspaceBatch, MAX_KEY_BYTES, Range, Result, prefix_end};
use std::collections::BTreeMap;
use std::ops::Bound;

/// A range of keys.
#[derive(Debug, Clone)]
pub enum Span<K> {
    All,
    Prefix(K),
    Range(Bound<K>, Bound<K>),
}

/// One operation of a batch.
#[derive(Debug, Clone)]
pub enum Change<K = Vec<u8>, V = Vec<u8>> {
    Put(K, V),
    Delete(K),
    DeleteSpan(Span<K>),
}

impl<K, V> Change<K, V> {
    /// Puts the value, if there is one; otherwise deletes the key.
    pub fn of(key: K, value: Option<V>) -> Self {
        match value {
            Some(value) => Change::Put(key, value),
            None => Change::Delete(key),
        }
    }
}

impl<K: AsRef<[u8]>, V> Change<K, V> {
    /// Whether it writes or deletes the key.
    pub fn concerns(&self, key: &[u8]) -> bool {
        match self {
            Change::Put(own, _) | Change::Delete(own) => own.as_ref() == key,
            Change::DeleteSpan(span) => span.holds(key),
        }
    }
}

impl<K: AsRef<[u8]>> Span<K> {
    /// This key alone.
    pub fn only(key: K) -> Self
    where
        K: Clone,
    {
        Span::Range(Bound::Included(key.clone()), Bound::Included(key))
    }

    pub fn holds(&self, key: &[u8]) -> bool {
        match self {
            Span::All => true,
            Span::Prefix(prefix) => key.starts_with(prefix.as_ref()),
            Span::Range(lower, upper) => {
                let above = match lower {
                    Bound::Included(bound) => key >= bound.as_ref(),
                    Bound::Excluded(bound) => key > bound.as_ref(),
                    Bound::Unbounded => true,
                };
                let below = match upper {
                    Bound::Included(bound) => key <= bound.as_ref(),
                    Bound::Excluded(bound) => key < bound.as_ref(),
                    Bound::Unbounded => true,
                };
                above && below
            }
        }
    }

    /// Whether a store refuses to delete it: an empty prefix, or a range whose end is before its start.
    pub fn is_refused(&self) -> bool {
        use Bound::{Excluded, Included};
        match self {
            Span::Prefix(prefix) => prefix.as_ref().is_empty(),
            Span::Range(Included(from) | Excluded(from), Included(to) | Excluded(to)) => {
                from.as_ref() > to.as_ref()
            }
            _ => false,
        }
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        use Bound::{Excluded, Included, Unbounded};
        let after = |key: &[u8]| match key.len() {
            MAX_KEY_BYTES => prefix_end(key),
            _ => Some([key, &[0]].concat()),
        };
        let Span::Range(lower, upper) = self else { return false };
        let first = match lower {
            Included(key) => Some(key.as_ref().to_vec()),
            Excluded(key) => after(key.as_ref()),
            Unbounded => Some(Vec::new()),
        };
        let end = match upper {
            Included(key) => after(key.as_ref()),
            Excluded(key) => Some(key.as_ref().to_vec()),
            Unbounded => None,
        };
        first.is_none_or(|first| end.is_some_and(|end| first >= end))
    }

    fn delete_in(&self, batch: &mut KeyspaceBatch<'_>) {
        match self {
            Span::All => batch.delete_range(..),
            Span::Prefix(prefix) => batch.delete_prefix(prefix),
            Span::Range(lower, upper) => batch.delete_range((lower.as_ref(), upper.as_ref())),
        }
    }
}

/// The rows that these changes put, in order of their keys; `None` if one of them deletes.
pub fn rows_put<K: Ord + Clone, V: Clone>(changes: &[Change<K, V>]) -> Option<BTreeMap<K, V>> {
    let row = |change: &Change<K, V>| match change {
        Change::Put(key, value) => Some((key.clone(), value.clone())),
        Change::Delete(_) | Change::DeleteSpan(_) => None,
    };
    changes.iter().map(row).collect()
}

/// A batch of the changes, in a keyspace.
pub fn batch_of<K: AsRef<[u8]>, V: AsRef<[u8]>>(keyspace: &Keyspace, changes: &[Change<K, V>]) -> Batch {
    let mut batch = Batch::new();
    add_to(&mut batch.keyspace(keyspace), changes);
    batch
}

/// Writes the changes as a transaction, which reads each key that it writes. Nobody else may write those.
pub fn transact<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    keyspace: &Keyspace,
    changes: &[Change<K, V>],
    durability: Durability,
) -> Result<()> {
    let transaction = keyspace.transaction();
    let tx = transaction.keyspace(keyspace)?;
    for change in changes {
        match change {
            Change::Put(key, value) => {
                tx.get(key)?;
                tx.put(key, value)?;
            }
            Change::Delete(key) => {
                tx.get(key)?;
                tx.delete(key)?;
            }
            Change::DeleteSpan(Span::All) => tx.delete_range(..)?,
            Change::DeleteSpan(Span::Prefix(prefix)) => tx.delete_prefix(prefix)?,
            Change::DeleteSpan(Span::Range(lower, upper)) => {
                tx.delete_range((lower.as_ref(), upper.as_ref()))?;
            }
        }
    }
    drop(tx);
    transaction.commit_with(durability)
}

pub fn add_to<K: AsRef<[u8]>, V: AsRef<[u8]>>(batch: &mut KeyspaceBatch<'_>, changes: &[Change<K, V>]) {
    for change in changes {
        match change {
            Change::Put(key, value) => batch.put(key, value),
            Change::Delete(key) => batch.delete(key),
            Change::DeleteSpan(span) => span.delete_in(batch),
        }
    }
}

/// Applies the changes to a model of the contents, in order.
pub fn apply<'a, K, V>(contents: &mut BTreeMap<K, V>, changes: impl IntoIterator<Item = &'a Change<K, V>>)
where
    K: Ord + Clone + AsRef<[u8]> + 'a,
    V: Clone + 'a,
{
    for change in changes {
        match change {
            Change::Put(key, value) => _ = contents.insert(key.clone(), value.clone()),
            Change::Delete(key) => _ = contents.remove(key),
            Change::DeleteSpan(span) => contents.retain(|key, _| !span.holds(key.as_ref())),
        }
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
