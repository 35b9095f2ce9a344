//! The rows of a keyspace within a transaction.

use super::bounds::Bounds;
use super::expiry::expiry;
use super::gather::values;
use super::handle::{Handle, KeyspaceIndex};
use super::readable::readable;
use super::rows::{Fetch, Part, Rows};
use super::text::object;
use super::views::{Items, Keys, Source, Values, View};
use super::work::{Work, ended};
use crate::error::or_raise;
use crate::keys::row_bytes;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sidebloom::{Error, Result, Value};
use std::ops::Bound as End;
use std::sync::Arc;

/// The rows of a keyspace as a transaction sees and changes them. A walk sees what the transaction writes
/// ahead of it, and counts as read as far as it went.
#[pyclass(module = "sidebloom", frozen, subclass)]
pub struct KeyspaceTransaction(Within);

/// No handle of the keyspace: that would keep a closed store locked.
#[derive(Clone)]
struct Within {
    work: Arc<Work>,
    index: KeyspaceIndex,
}

impl Within {
    /// Runs `work`; `None` once the transaction has ended.
    fn with_detached<T>(
        &self,
        work: impl FnOnce(&sidebloom::KeyspaceTransaction<'_>) -> Result<T>,
    ) -> Option<Result<T>> {
        let handle = &self.work.handle;
        self.work.while_open(|transaction| {
            handle.with_open_keyspace(self.index, |keyspace| work(&transaction.keyspace(keyspace)?))
        })
    }

    /// Runs `work` without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&sidebloom::KeyspaceTransaction<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.work.handle.check_process()?;
        or_raise(py.detach(|| self.with_detached(work)).ok_or_else(ended)?)
    }
}

impl KeyspaceTransaction {
    pub fn new(work: Arc<Work>, index: KeyspaceIndex) -> Self {
        KeyspaceTransaction(Within { work, index })
    }

    pub fn work(&self) -> &Arc<Work> {
        &self.0.work
    }

    fn is_text(&self) -> bool {
        self.0.work.handle.is_text
    }

    fn value<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = row_bytes(key, self.is_text())?;
        let value = self.0.get(key.py(), &bytes)?;
        value.map(|value| object(key.py(), &value, self.is_text())).transpose()
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&sidebloom::KeyspaceTransaction<'_>) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.0.with(py, work)
    }

    fn view(
        &self,
        prefix: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<View> {
        Ok(View::new(self.0.clone(), Bounds::of(prefix, start, stop, self.is_text())?))
    }
}

impl Source for Within {
    fn handle(&self) -> &Arc<Handle> {
        &self.work.handle
    }

    fn walk(&self, _: Python<'_>, bounds: &Bounds) -> PyResult<Box<dyn Fetch>> {
        let (lower, upper) = bounds.ends();
        let [lower, upper] = [lower, upper].map(|end| end.map(<[u8]>::to_vec));
        Ok(Box::new(Walk { within: self.clone(), lower, upper }))
    }

    fn get(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Value>> {
        self.with(py, |transaction| transaction.get(key))
    }

    fn count(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<u64> {
        self.with(py, |transaction| transaction.range(bounds.ends()).count())
    }
}

/// A walk that continues after the last row with each fetch, so that the transaction can write meanwhile.
struct Walk {
    within: Within,
    lower: End<Vec<u8>>,
    upper: End<Vec<u8>>,
}

impl Fetch for Walk {
    fn fetch(&mut self, most: usize, is_reverse: bool) -> Result<Vec<(Vec<u8>, Value)>> {
        let Walk { within, lower, upper } = self;
        let rows = within.with_detached(|transaction| {
            let mut range = transaction.range((lower.clone(), upper.clone()));
            let mut next = || if is_reverse { range.next_back() } else { range.next() };
            (0..most).map_while(|_| next()).collect()
        });
        let rows: Vec<(Vec<u8>, Value)> = rows.unwrap_or(Err(Error::Closing))?;
        if let Some((last, _)) = rows.last() {
            *(if is_reverse { upper } else { lower }) = End::Excluded(last.clone());
        }
        Ok(rows)
    }
}

#[pymethods]
impl KeyspaceTransaction {
    /// The value of each key of an iterable, in order; `default` for those that are missing.
    #[pyo3(signature = (keys, default = None, /))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        values(keys, default, self.is_text(), |slices| {
            self.with(keys.py(), |transaction| transaction.multi_get(slices))
        })
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = row_bytes(key, self.is_text())?;
        self.with(key.py(), |transaction| transaction.contains_key(&bytes))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None, None)
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = row_bytes(key, self.is_text())?;
        let existed = self.with(key.py(), |transaction| {
            let exists = transaction.contains_key(&bytes)?;
            if exists {
                transaction.delete(&bytes)?;
            }
            Ok(exists)
        })?;
        if existed { Ok(()) } else { Err(PyKeyError::new_err((key.clone().unbind(),))) }
    }

    /// Sets a key to a value; see `Keyspace.put`.
    #[pyo3(signature = (key, value, *, expire_after = None, expire_at = None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire_after: Option<&Bound<'_, PyAny>>,
        expire_at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (py, is_text) = (key.py(), self.is_text());
        let (key, value) = (row_bytes(key, is_text)?, row_bytes(value, is_text)?);
        let expiry = expiry(expire_after, expire_at)?;
        self.with(py, |transaction| match expiry {
            Some(expiry) => transaction.put_with(&key, &value, expiry),
            None => transaction.put(&key, &value),
        })
    }

    /// Deletes a key, which may be missing.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = row_bytes(key, self.is_text())?;
        self.with(key.py(), |transaction| transaction.delete(&bytes))
    }

    /// Deletes the keys from `start` on and before `stop`; None is no limit.
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let bounds = Bounds::of(None, start, stop, self.is_text())?;
        if bounds.is_empty {
            return Ok(());
        }
        self.with(py, |transaction| transaction.delete_range(bounds.ends()))
    }

    /// Deletes the keys that begin with `prefix`, which is not empty.
    fn delete_prefix(&self, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = row_bytes(prefix, self.is_text())?;
        self.with(prefix.py(), |transaction| transaction.delete_prefix(&bytes))
    }

    /// Sets a key only if it is missing. Returns whether it was.
    fn insert_new(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, is_text) = (key.py(), self.is_text());
        let (key, value) = (row_bytes(key, is_text)?, row_bytes(value, is_text)?);
        self.with(py, |transaction| transaction.insert_new(&key, &value))
    }
}

readable!(KeyspaceTransaction);
