//! `Transaction`: reads and writes that are committed together.

use super::handle::{Handle, KeyspaceIndex};
use super::keyspace::Keyspace;
use super::keyspace_transaction::KeyspaceTransaction;
use super::work::Work;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// Reads and writes of a store that are committed together: with `commit`, or when the `with` block ends
/// without an exception. Its reads see the store as of its beginning, and its own writes. Nobody sees its
/// writes before the commit.
///
/// It is used as its keyspace is; `keyspace` gives others of the same store.
#[pyclass(module = "sidebloom", frozen, extends = KeyspaceTransaction)]
pub struct Transaction;

impl Transaction {
    pub fn new(
        handle: &Arc<Handle>,
        transaction: sidebloom::Transaction,
        index: KeyspaceIndex,
    ) -> PyClassInitializer<Self> {
        let work = Work::new(handle, transaction);
        PyClassInitializer::from(KeyspaceTransaction::new(Arc::new(work), index)).add_subclass(Transaction)
    }
}

#[pymethods]
impl Transaction {
    /// Another keyspace of the same store, within this transaction.
    fn keyspace(slf: PyRef<'_, Self>, keyspace: &Bound<'_, PyAny>) -> PyResult<KeyspaceTransaction> {
        let work = slf.as_super().work();
        let (py, index) = (keyspace.py(), Keyspace::index_in(keyspace, &work.handle)?);
        work.handle.with_keyspace(py, index, |_| Ok(()))?;
        Ok(KeyspaceTransaction::new(Arc::clone(work), index))
    }

    /// Commits the reads and writes. The transaction cannot be used afterwards.
    ///
    /// sync: whether the writes are on the disk before this returns; by default as the store does it.
    #[pyo3(signature = (*, sync = None))]
    fn commit(slf: PyRef<'_, Self>, py: Python<'_>, sync: Option<bool>) -> PyResult<()> {
        slf.as_super().work().commit(py, sync)
    }

    /// Drops the writes. The transaction cannot be used afterwards.
    fn roll_back(slf: PyRef<'_, Self>, py: Python<'_>) {
        slf.as_super().work().roll_back(py);
    }

    /// The writes so far, to return to with `roll_back_to`.
    fn savepoint(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<u64> {
        slf.as_super().work().savepoint(py)
    }

    /// Drops the writes since a savepoint.
    fn roll_back_to(slf: PyRef<'_, Self>, py: Python<'_>, savepoint: u64) -> PyResult<()> {
        slf.as_super().work().roll_back_to(py, savepoint)
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
        let work = slf.as_super().work();
        // A block may have ended the transaction itself.
        if kind.is_none() && work.is_open(py) {
            return work.commit(py, None);
        }
        work.roll_back(py);
        Ok(())
    }
}
