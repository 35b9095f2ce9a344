//! `Batch`: writes that are made together.

use super::bounds::Bounds;
use super::expiry::expiry;
use super::handle::{Handle, KeyspaceIndex};
use super::keyspace::Keyspace;
use crate::error::{closed, or_raise};
use crate::keys::row_bytes;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sidebloom::{Batch as RowBatch, Durability, KeyspaceBatch};
use std::sync::{Arc, Mutex, PoisonError};

/// Writes that are made together or not at all: with `commit`, or when the `with` block ends without an
/// exception. Nothing is written before, and nobody sees a part of them.
#[pyclass(module = "sidebloom", frozen)]
pub struct Batch {
    handle: Arc<Handle>,
    index: KeyspaceIndex,
    sync: Option<bool>,
    /// None once it was committed or dropped.
    rows: Mutex<Option<RowBatch>>,
}

impl Batch {
    pub fn new(handle: &Arc<Handle>, index: KeyspaceIndex, sync: Option<bool>) -> Self {
        Batch { handle: Arc::clone(handle), index, sync, rows: Mutex::new(Some(RowBatch::new())) }
    }

    fn take(&self) -> Option<RowBatch> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds to it, for a keyspace of the same store.
    fn add(
        &self,
        keyspace: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
        add: impl FnOnce(&mut KeyspaceBatch<'_>) + Send,
    ) -> PyResult<()> {
        self.handle.check_process()?;
        let own = Ok(self.index);
        let index = keyspace.map_or(own, |keyspace| Keyspace::index_in(keyspace, &self.handle))?;
        // The store's lock first: whoever holds the rows waits for nobody.
        let added = py.detach(|| {
            self.handle.with_open_keyspace(index, |keyspace| {
                let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(rows.as_mut().map(|rows| add(&mut rows.keyspace(keyspace))))
            })
        });
        or_raise(added)?.ok_or_else(|| closed("batch"))
    }
}

#[pymethods]
impl Batch {
    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None, None, None)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(key, None)
    }

    /// Sets a key to a value; see `Keyspace.put`. `keyspace` is another one of the same store.
    #[pyo3(signature = (key, value, *, expire_after = None, expire_at = None, keyspace = None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire_after: Option<&Bound<'_, PyAny>>,
        expire_at: Option<&Bound<'_, PyAny>>,
        keyspace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let is_text = self.handle.is_text;
        let (py, key, value) = (key.py(), row_bytes(key, is_text)?, row_bytes(value, is_text)?);
        let expiry = expiry(expire_after, expire_at)?;
        self.add(keyspace, py, |batch| match expiry {
            Some(expiry) => batch.put_with(&key, &value, expiry),
            None => batch.put(&key, &value),
        })
    }

    /// Deletes a key, which may be missing.
    #[pyo3(signature = (key, *, keyspace = None))]
    fn delete(&self, key: &Bound<'_, PyAny>, keyspace: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (py, key) = (key.py(), row_bytes(key, self.handle.is_text)?);
        self.add(keyspace, py, |batch| batch.delete(&key))
    }

    /// Deletes the keys from `start` on and before `stop`; None is no limit.
    #[pyo3(signature = (start, stop, *, keyspace = None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        keyspace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let bounds = Bounds::of(None, start, stop, self.handle.is_text)?;
        self.add(keyspace, py, |batch| {
            if !bounds.is_empty {
                batch.delete_range(bounds.ends());
            }
        })
    }

    /// Deletes the keys that begin with `prefix`, which is not empty.
    #[pyo3(signature = (prefix, *, keyspace = None))]
    fn delete_prefix(&self, prefix: &Bound<'_, PyAny>, keyspace: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (py, prefix) = (prefix.py(), row_bytes(prefix, self.handle.is_text)?);
        self.add(keyspace, py, |batch| batch.delete_prefix(&prefix))
    }

    /// Writes it. It cannot be used afterwards.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.check_process()?;
        let rows = self.take().ok_or_else(|| closed("batch"))?;
        self.handle.with_keyspace(py, self.index, |keyspace| match self.sync {
            Some(true) => keyspace.write_with(rows, Durability::Sync),
            Some(false) => keyspace.write_with(rows, Durability::Os),
            None => keyspace.write(rows),
        })
    }

    /// Drops it. It cannot be used afterwards.
    fn drop(&self) {
        if self.handle.is_own() {
            self.take();
        }
    }

    /// The number of writes.
    fn __len__(&self) -> PyResult<usize> {
        self.handle.check_process()?;
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(rows.as_ref().map_or(0, RowBatch::len))
    }

    /// True, also without writes.
    fn __bool__(&self) -> bool {
        true
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (kind, *_rest))]
    fn __exit__(&self, py: Python<'_>, kind: &Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_open =
            !self.handle.is_own() || self.rows.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if kind.is_none() && is_open {
            return self.commit(py);
        }
        self.drop();
        Ok(())
    }
}
