//! What a transaction, its keyspaces and its walks share.

use super::handle::Handle;
use crate::error::{closed, invalid, or_raise};
use pyo3::prelude::*;
use sidebloom::{Durability, Result, Savepoint, Transaction};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A transaction, until it ends.
pub struct Work {
    pub handle: Arc<Handle>,
    open: Mutex<Option<Open>>,
}

struct Open {
    transaction: Transaction,
    savepoints: HashMap<u64, Savepoint>,
    next_savepoint: u64,
}

impl Work {
    pub fn new(handle: &Arc<Handle>, transaction: Transaction) -> Self {
        let open = Open { transaction, savepoints: HashMap::new(), next_savepoint: 0 };
        Work { handle: Arc::clone(handle), open: Mutex::new(Some(open)) }
    }

    /// Runs `work`; `None` once the transaction has ended. Call it without the GIL.
    pub fn while_open<T>(&self, work: impl FnOnce(&Transaction) -> T) -> Option<T> {
        self.lock_and(|open| work(&open.transaction))
    }

    fn lock_and<T>(&self, work: impl FnOnce(&mut Open) -> T) -> Option<T> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    pub fn is_open(&self, py: Python<'_>) -> bool {
        self.handle.is_own() && py.detach(|| self.lock_and(|_| ()).is_some())
    }

    /// The writes so far, by a number.
    ///
    /// # Errors
    /// `ForkedError`; `ClosedError` once the transaction has ended.
    pub fn savepoint(&self, py: Python<'_>) -> PyResult<u64> {
        self.handle.check_process()?;
        let set = |open: &mut Open| {
            let number = open.next_savepoint;
            open.next_savepoint += 1;
            open.savepoints.insert(number, open.transaction.savepoint());
            number
        };
        py.detach(|| self.lock_and(set)).ok_or_else(ended)
    }

    /// Drops the writes since a savepoint.
    ///
    /// # Errors
    /// `InvalidArgumentError` for one that this transaction does not have; those of
    /// [`savepoint`](Self::savepoint).
    pub fn roll_back_to(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        self.handle.check_process()?;
        let roll_back = |open: &mut Open| -> Option<Result<()>> {
            let savepoint = open.savepoints.get(&number)?;
            Some(open.transaction.roll_back_to(*savepoint))
        };
        let done = py.detach(|| self.lock_and(roll_back)).ok_or_else(ended)?;
        or_raise(done.ok_or_else(|| invalid(format!("the transaction has no savepoint {number}")))?)
    }

    /// Commits, and ends the transaction.
    ///
    /// # Errors
    /// `ConflictError`; those of [`savepoint`](Self::savepoint).
    pub fn commit(&self, py: Python<'_>, sync: Option<bool>) -> PyResult<()> {
        self.handle.check_process()?;
        let done = py.detach(|| {
            self.take().map(|transaction| match sync {
                Some(true) => transaction.commit_with(Durability::Sync),
                Some(false) => transaction.commit_with(Durability::Os),
                None => transaction.commit(),
            })
        });
        or_raise(done.ok_or_else(ended)?)
    }

    /// Ends the transaction without a commit.
    pub fn roll_back(&self, py: Python<'_>) {
        if !self.handle.is_own() {
            return;
        }
        py.detach(|| drop(self.take()));
    }

    fn take(&self) -> Option<Transaction> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take().map(|open| open.transaction)
    }
}

/// The exception for a transaction that has ended.
pub fn ended() -> PyErr {
    closed("transaction")
}
