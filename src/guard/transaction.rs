//! One call that orders writes so that every "no" stays true.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1. the inserted keys are durable in the guard | possibly surplus keys: "maybe" instead of "no" |
//! | 2. the database commits | the removed keys as surplus keys |
//! | 3. the removed keys leave the guard | nothing amiss |

use super::changes::ChangeKind;
use super::handle::Guard;
use super::stored_hash::StoredHash;
use super::write::CommitPhase;
use crate::error::{Error, Result};
use crate::sync::lock;
use std::collections::HashSet;

/// Changes of keys that belong to one transaction of the database. Call order:
/// `(insert | insert_new | remove)* commit`.
pub struct Transaction<'g> {
    guard: &'g Guard,
    /// In call order.
    changes: Vec<(StoredHash, ChangeKind)>,
}

impl Guard {
    /// Starts a transaction, which does nothing before [`Transaction::commit`].
    ///
    /// Unlike [`insert`](Self::insert) and [`remove`](Self::remove) around a commit, a transaction is visible
    /// to a [`refresh`](Self::refresh) that runs at the same time.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction { guard: self, changes: Vec::new() }
    }
}

impl Transaction<'_> {
    /// Inserts a row with this key.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that the canonical form does not allow.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.push(key.as_ref(), ChangeKind::Insert)
    }

    /// Inserts a key unless it exists: for a database that stores each key once.
    ///
    /// Call it for every key that the database sets, even one that the guard knows ([`Guard::contains`]). The
    /// guard may know it needlessly, and a [`refresh`](Guard::refresh) that read the database without it
    /// learns of it only here. After a [`remove`](Self::remove) of the same key in this transaction, the key
    /// stays.
    ///
    /// Writers of the same key must run one after the other: each holds its own lock from this call until
    /// [`commit`](Self::commit) has returned. A key counts once, so an earlier writer's removal could
    /// otherwise undo this insertion.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_new(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.push(key.as_ref(), ChangeKind::InsertNew)
    }

    /// Removes a row with this key.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.push(key.as_ref(), ChangeKind::Remove)
    }

    fn push(&mut self, key: &[u8], kind: ChangeKind) -> Result<&mut Self> {
        self.changes.push((self.guard.shared().hash(key)?, kind));
        Ok(self)
    }

    fn insertions(&self) -> Vec<(StoredHash, ChangeKind)> {
        self.changes.iter().copied().filter(|(_, kind)| *kind != ChangeKind::Remove).collect()
    }

    /// The removals, except of keys that a later `insert_new` names.
    fn removals(&self) -> Vec<(StoredHash, ChangeKind)> {
        let mut kept = HashSet::new();
        let mut removals = Vec::new();
        for &(hash, kind) in self.changes.iter().rev() {
            match kind {
                ChangeKind::InsertNew => drop(kept.insert(hash)),
                ChangeKind::Remove if !kept.contains(&hash) => removals.push((hash, kind)),
                _ => {}
            }
        }
        removals
    }

    /// Makes the insertions durable, calls `database` to commit, and then applies the removals.
    ///
    /// # Errors
    /// On an error of the guard before it calls `database`, nothing has happened. On an error of `database`,
    /// which may have committed even so, the insertions stay and the removals are not applied: the guard may
    /// say "maybe" too often until it is reconciled. A removal that fails after the commit is logged and is
    /// not an error: the database has committed, and the next change of the guard reports the failure.
    ///
    /// If an error leaves it open whether the database has committed or will (a broken connection), find out
    /// before the next [`refresh`](Guard::refresh). If that reads the database before the late commit, it
    /// misses its rows.
    ///
    /// The commit must be as durable as the removals that follow it: see the second rule in the
    /// [module](super) documentation.
    pub fn commit<T, E: From<Error>>(self, database: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let shared = self.guard.shared();
        shared.check_writable()?;
        let id = {
            let mut in_flight = lock(&shared.in_flight);
            in_flight.next_transaction += 1;
            in_flight.next_transaction
        };
        let insertions = self.insertions();
        if !insertions.is_empty() {
            shared.apply(&insertions, None, CommitPhase::Before(id))?;
        }
        let open = OpenTransaction { guard: self.guard, id };
        let began = lock(&shared.in_flight).epoch;
        let outcome = database()?;
        let removals = self.removals();
        if !removals.is_empty()
            && let Err(error) = shared.apply(&removals, None, CommitPhase::After { began })
        {
            tracing::warn!(%error, "removed keys stay in the guard");
        }
        drop(open);
        Ok(outcome)
    }
}

/// A transaction whose insertions are in the guard, and perhaps not yet in the database. Ends when dropped,
/// even by a panic.
struct OpenTransaction<'g> {
    guard: &'g Guard,
    id: u64,
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        let shared = self.guard.shared();
        // In a forked process, another thread may have locked it for good.
        if shared.process.is_current() {
            lock(&shared.in_flight).open.remove(&self.id);
        }
    }
}
