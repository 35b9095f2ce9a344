//! Snapshots, batches and transactions of a keyspace.

use super::batch::Batch;
use super::keyspace::Keyspace;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::error::{closed, invalid};
use pyo3::prelude::*;

#[pymethods]
impl Keyspace {
    /// The rows as of now, which later writes do not change. A context manager.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Snapshot> {
        let snapshot = self.with(py, |keyspace| Ok(keyspace.snapshot()))?;
        Ok(Snapshot::new(&self.handle, snapshot))
    }

    /// Writes that are made together or not at all, when the `with` block ends without an exception.
    ///
    /// sync: whether the batch is on the disk before `commit` returns; by default as the store does it.
    #[pyo3(signature = (*, sync = None))]
    fn batch(&self, py: Python<'_>, sync: Option<bool>) -> PyResult<Batch> {
        if self.handle.is_closed(py)? {
            return Err(closed("store"));
        }
        Ok(Batch::new(&self.handle, self.index, sync))
    }

    /// A transaction: reads and writes that are committed together, when the `with` block ends without an
    /// exception. If others have changed what it read, raises ConflictError; `transact` tries again.
    ///
    /// isolation: "serializable" (the default), or "snapshot", which compares only the keys that it writes.
    #[pyo3(signature = (*, isolation = "serializable"))]
    fn transaction(&self, py: Python<'_>, isolation: &str) -> PyResult<Py<Transaction>> {
        let isolation = match isolation {
            "serializable" => sidebloom::Isolation::Serializable,
            "snapshot" => sidebloom::Isolation::Snapshot,
            _ => {
                return Err(invalid(format!(
                    "isolation is {isolation:?}: \"serializable\" or \"snapshot\" expected"
                )));
            }
        };
        let transaction = self.with(py, |keyspace| Ok(keyspace.transaction_with(isolation)))?;
        Py::new(py, Transaction::new(&self.handle, transaction, self.index))
    }
}
