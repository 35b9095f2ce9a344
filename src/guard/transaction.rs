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
use std::collections::HashMap;

/// Changes of keys that belong to one transaction of the database. Call order: `(insert | insert_new | remove)* commit`.
pub struct Transaction<'g> {
    guard: &'g Guard,
    inserts: Vec<(Hashed, Op)>,
    removes: Vec<(Hashed, Op)>,
    /// For each key of `insert_new`, how many removals were said before it.
    stays_after: HashMap<Hashed, usize>,
}

impl Guard {
    /// Starts a transaction; it does nothing before [`Transaction::commit`].
    ///
    /// Unlike [`insert`](Self::insert) and [`remove`](Self::remove) around a commit it is known to a [`refresh`](Self::refresh) that
    /// runs at the same time.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction { guard: self, inserts: Vec::new(), removes: Vec::new(), stays_after: HashMap::new() }
    }
}

impl Transaction<'_> {
    /// A row with this key comes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that the canonical form does not allow.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.inserts.push((self.guard.shared().hash(key.as_ref())?, Op::Insert));
        Ok(self)
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
        let hash = self.guard.shared().hash(key.as_ref())?;
        self.inserts.push((hash, Op::InsertNew));
        self.stays_after.insert(hash, self.removes.len());
        Ok(self)
    }

    /// A row with this key goes.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<&mut Self> {
        self.removes.push((self.guard.shared().hash(key.as_ref())?, Op::Remove));
        Ok(self)
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
        if !self.inserts.is_empty() {
            shared.apply(&self.inserts, None, Origin::Begin(id))?;
        }
        let open = Open { guard: self.guard, id };
        let began = lock(&shared.flux).epoch;
        let outcome = database()?;
        let is_last = |(n, (hash, _)): &(usize, &(Hashed, Op))| {
            self.stays_after.get(hash).is_none_or(|removed_before| n >= removed_before)
        };
        let removes: Vec<_> =
            self.removes.iter().enumerate().filter(is_last).map(|(_, change)| *change).collect();
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
