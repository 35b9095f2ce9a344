//! The order of writes that keeps every "no" true, made the easy one.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1. the keys that come are durable in the guard | perhaps keys too many: "maybe" instead of "no" |
//! | 2. the database commits | keys that have gone, too many |
//! | 3. the keys that have gone leave the guard | nothing amiss |

use super::generation::Op;
use super::handle::Guard;
use super::hashed::Hashed;
use super::write::Origin;
use crate::db::lock;
use crate::error::{Error, Result};
use std::collections::HashSet;

/// Changes of keys that belong to one transaction of the database. Call order: `(insert | insert_new | remove)* commit`.
pub struct Transaction<'g> {
    guard: &'g Guard,
    /// In the order in which they were said.
    changes: Vec<(Hashed, Op)>,
}

impl Guard {
    /// Starts a transaction; it does nothing before [`Transaction::commit`].
    ///
    /// Unlike [`insert`](Self::insert) and [`remove`](Self::remove) around a commit it is known to a [`refresh`](Self::refresh) that
    /// runs at the same time.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction { guard: self, changes: Vec::new() }
    }
}

impl Transaction<'_> {
    /// A row with this key comes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that the canonical form does not allow.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.push(key.as_ref(), Op::Insert)
    }

    /// A key comes, unless it is there already: for a database where each key stands once.
    ///
    /// Say it of every key that the database sets, also of one that the guard knows ([`Guard::exact`]): it may know of it needlessly, and
    /// a [`refresh`](Guard::refresh) that has read the database without it learns of it here only. After a [`remove`](Self::remove) of the
    /// same key in this transaction, the key stays.
    ///
    /// Writers of one key must come one after the other: each holds a lock of its own from here until [`commit`](Self::commit) has
    /// returned. A key counts once, so the removal of a writer that deleted it before would otherwise take this insertion away.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_new(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.push(key.as_ref(), Op::InsertNew)
    }

    /// A row with this key goes.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.push(key.as_ref(), Op::Remove)
    }

    fn push(&mut self, key: &[u8], op: Op) -> Result<&mut Self> {
        self.changes.push((self.guard.shared().hash(key)?, op));
        Ok(self)
    }

    fn inserts(&self) -> Vec<(Hashed, Op)> {
        self.changes.iter().copied().filter(|(_, op)| *op != Op::Remove).collect()
    }

    /// The removals, but for those of a key that `insert_new` names later.
    fn removes(&self) -> Vec<(Hashed, Op)> {
        let mut stay = HashSet::new();
        let mut removes = Vec::new();
        for &(hash, op) in self.changes.iter().rev() {
            match op {
                Op::InsertNew => drop(stay.insert(hash)),
                Op::Remove if !stay.contains(&hash) => removes.push((hash, op)),
                Op::Remove | Op::Insert => {}
            }
        }
        removes
    }

    /// Makes the insertions durable, lets `database` commit, and then removes what has gone.
    ///
    /// # Errors
    /// An error of the guard before `database` was called: nothing has happened. An error of `database`: since it may have committed
    /// all the same, the insertions stay and the removals are not done, so that the guard may say "maybe" too often until it is
    /// reconciled. A removal that fails after the commit is logged and not an error: the database has what it was told, and the next
    /// change of the guard reports the failure.
    ///
    /// When an error leaves it open whether the database has committed or will (a connection that broke), wait until that is settled
    /// before the next [`refresh`](Guard::refresh): one that reads the database before the late commit does not know of its rows.
    ///
    /// The commit must be as durable as the removals that follow it: see the second of the rules in the [module](super).
    pub fn commit<T, E: From<Error>>(self, database: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let shared = self.guard.shared();
        shared.check_writable()?;
        let id = {
            let mut flux = lock(&shared.flux);
            flux.next_transaction += 1;
            flux.next_transaction
        };
        let inserts = self.inserts();
        if !inserts.is_empty() {
            shared.apply(&inserts, None, Origin::Begin(id))?;
        }
        let open = Open { guard: self.guard, id };
        let began = lock(&shared.flux).epoch;
        let outcome = database()?;
        let removes = self.removes();
        if !removes.is_empty()
            && let Err(error) = shared.apply(&removes, None, Origin::Finish { began })
        {
            tracing::warn!(%error, "keys that have gone stay in the guard");
        }
        drop(open);
        Ok(outcome)
    }
}

/// A transaction whose insertions are in the guard, and not yet surely in the database. Ends when dropped, also by a panic.
struct Open<'g> {
    guard: &'g Guard,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        lock(&self.guard.shared().flux).open.remove(&self.id);
    }
}
