//! `Transaction`: reads and writes that are committed together.

use super::handle::{Handle, KeyspaceIndex};
use super::keyspace::Keyspace;
use super::keyspace_transaction::KeyspaceTransaction;
use crate::error::{closed, invalid, or_raise, wrong_type};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sidebloom::{Durability, Savepoint};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Reads and writes of a store that are committed together: with `commit`, or when the `with` block ends
/// without an exception. Its reads see the store as of its beginning, and its own writes. Nobody sees its
/// writes before the commit.
///
/// It is used as its keyspace is; `keyspace` gives others of the same store.
#[pyclass(module = "sidebloom", frozen, extends = KeyspaceTransaction)]
pub struct Transaction;

/// A transaction that its keyspaces and walks share.
pub struct Work {
    pub handle: Arc<Handle>,
    open: Mutex<Option<Open>>,
}

struct Open {
    transaction: sidebloom::Transaction,
    savepoints: HashMap<u64, Savepoint>,
    next_savepoint: u64,
}

impl Work {
    /// Runs `work` without the GIL.
    ///
    /// # Errors
    /// `ForkedError`; `ClosedError` after the commit; the errors of `work`.
    fn with_open<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Open) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        self.handle.check_process()?;
        let done = py.detach(|| self.lock_and(work));
        or_raise(done.ok_or_else(|| closed("transaction"))?)
    }

    /// Runs `work`, unless the transaction has ended.
    fn lock_and<T>(&self, work: impl FnOnce(&mut Open) -> T) -> Option<T> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    /// Runs `work`; `None` once the transaction has ended. Call it without the GIL.
    pub fn while_open<T>(&self, work: impl FnOnce(&sidebloom::Transaction) -> T) -> Option<T> {
        self.lock_and(|open| work(&open.transaction))
    }

    fn take(&self) -> Option<sidebloom::Transaction> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take().map(|open| open.transaction)
    }
}

impl Transaction {
    pub fn new(
        handle: &Arc<Handle>,
        transaction: sidebloom::Transaction,
        index: KeyspaceIndex,
    ) -> PyClassInitializer<Self> {
        let open = Open { transaction, savepoints: HashMap::new(), next_savepoint: 0 };
        let work = Work { handle: Arc::clone(handle), open: Mutex::new(Some(open)) };
        PyClassInitializer::from(KeyspaceTransaction::new(Arc::new(work), index)).add_subclass(Transaction)
    }
}

#[pymethods]
impl Transaction {
    /// Another keyspace of the same store, within this transaction.
    fn keyspace(slf: PyRef<'_, Self>, keyspace: &Bound<'_, PyAny>) -> PyResult<KeyspaceTransaction> {
        let work = slf.as_super().work();
        let Ok(other) = keyspace.cast::<Keyspace>() else { return Err(wrong_type("a Keyspace", keyspace)) };
        let other = other.get();
        if !Arc::ptr_eq(&other.handle, &work.handle) {
            return Err(invalid("the keyspace belongs to another store"));
        }
        other.with(keyspace.py(), |_| Ok(()))?;
        Ok(KeyspaceTransaction::new(Arc::clone(work), other.index))
    }

    /// Commits the reads and writes. The transaction cannot be used afterwards.
    ///
    /// sync: whether the writes are on the disk before this returns; by default as the store does it.
    #[pyo3(signature = (*, sync = None))]
    fn commit(slf: PyRef<'_, Self>, py: Python<'_>, sync: Option<bool>) -> PyResult<()> {
        let work = slf.as_super().work();
        work.handle.check_process()?;
        let done = py.detach(|| {
            work.take().map(|transaction| match sync {
                Some(true) => transaction.commit_with(Durability::Sync),
                Some(false) => transaction.commit_with(Durability::Os),
                None => transaction.commit(),
            })
        });
        or_raise(done.ok_or_else(|| closed("transaction"))?)
    }

    /// Drops the writes. The transaction cannot be used afterwards.
    fn roll_back(slf: PyRef<'_, Self>, py: Python<'_>) {
        let work = slf.as_super().work();
        py.detach(|| drop(work.take()));
    }

    /// The writes so far, to return to with `roll_back_to`.
    fn savepoint(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<u64> {
        slf.as_super().work().with_open(py, |open| {
            let number = open.next_savepoint;
            open.next_savepoint += 1;
            open.savepoints.insert(number, open.transaction.savepoint());
            Ok(number)
        })
    }

    /// Drops the writes since a savepoint.
    fn roll_back_to(slf: PyRef<'_, Self>, py: Python<'_>, savepoint: u64) -> PyResult<()> {
        let is_known = slf.as_super().work().with_open(py, |open| match open.savepoints.get(&savepoint) {
            Some(&known) => open.transaction.roll_back_to(known).map(|()| true),
            None => Ok(false),
        })?;
        if is_known { Ok(()) } else { Err(invalid(format!("the transaction has no savepoint {savepoint}"))) }
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (kind, *_rest))]
    fn __exit__(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _rest: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        // A block may have ended the transaction itself.
        let work = Arc::clone(slf.as_super().work());
        let is_open = py.detach(|| work.lock_and(|_| ()).is_some());
        if kind.is_none() && is_open {
            return Self::commit(slf, py, None);
        }
        Self::roll_back(slf, py);
        Ok(())
    }
}
