//! Reads and writes of a keyspace.

use super::bounds::Bounds;
use super::expiry::expiry;
use super::keyspace::Keyspace;
use super::readable::readable;
use super::rows::{Part, Rows};
use super::views::{Items, Keys, Values};
use crate::keys::row_bytes;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use sidebloom::{CompareAndSet, Expiry, TimeToLive};

#[pymethods]
impl Keyspace {
    /// The name; "" for the default keyspace.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |keyspace| Ok(keyspace.name().to_owned()))
    }

    /// Whether keys and values are str.
    #[getter]
    fn text(&self) -> bool {
        self.is_text()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = row_bytes(key, self.is_text())?;
        self.with(key.py(), |keyspace| keyspace.contains_key(&bytes))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key_bytes, value) = (row_bytes(key, self.is_text())?, row_bytes(value, self.is_text())?);
        self.with(key.py(), |keyspace| keyspace.put(&key_bytes, &value))
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = row_bytes(key, self.is_text())?;
        match self.take(key.py(), &bytes, |_| Ok(()))? {
            Some(_) => Ok(()),
            None => Err(PyKeyError::new_err((key.clone().unbind(),))),
        }
    }

    /// Sets a key to a value.
    ///
    /// expire_after: seconds, or a timedelta, after which the row is gone.
    /// expire_at: when it is gone: seconds since 1970, or a datetime with a time zone.
    #[pyo3(signature = (key, value, *, expire_after = None, expire_at = None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire_after: Option<&Bound<'_, PyAny>>,
        expire_at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (key_bytes, value) = (row_bytes(key, self.is_text())?, row_bytes(value, self.is_text())?);
        let expiry = expiry(expire_after, expire_at)?;
        self.with(key.py(), |keyspace| match expiry {
            Some(expiry) => keyspace.put_with(&key_bytes, &value, expiry),
            None => keyspace.put(&key_bytes, &value),
        })
    }

    /// Deletes a key, which may be missing. Faster than `del`, which has to look it up.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = row_bytes(key, self.is_text())?;
        self.with(key.py(), |keyspace| keyspace.delete(&bytes))
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
        self.with(py, |keyspace| keyspace.delete_range(bounds.ends()))
    }

    /// Deletes the keys that begin with `prefix`, which is not empty.
    fn delete_prefix(&self, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = row_bytes(prefix, self.is_text())?;
        self.with(prefix.py(), |keyspace| keyspace.delete_prefix(&bytes))
    }

    /// Sets a key only if it is missing. Returns whether it was.
    #[pyo3(signature = (key, value, *, expire_after = None, expire_at = None))]
    fn insert_new(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        expire_after: Option<&Bound<'_, PyAny>>,
        expire_at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (key_bytes, value) = (row_bytes(key, self.is_text())?, row_bytes(value, self.is_text())?);
        let expiry = expiry(expire_after, expire_at)?;
        self.with(key.py(), |keyspace| match expiry {
            Some(expiry) => keyspace.insert_new_with(&key_bytes, &value, expiry),
            None => keyspace.insert_new(&key_bytes, &value),
        })
    }

    /// Sets a key to `new` only if its value is `expected`; None stands for a missing key. Returns whether it
    /// was set.
    fn compare_and_set(
        &self,
        key: &Bound<'_, PyAny>,
        expected: Option<&Bound<'_, PyAny>>,
        new: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let bytes = row_bytes(key, self.is_text())?;
        let value = |object: Option<&Bound<'_, PyAny>>| -> PyResult<Option<Vec<u8>>> {
            object.map(|object| Ok(row_bytes(object, self.is_text())?.into_owned())).transpose()
        };
        let (expected, new) = (value(expected)?, value(new)?);
        let done = self
            .with(key.py(), |keyspace| keyspace.compare_and_set(&bytes, expected.as_deref(), new.as_deref()));
        done.map(|outcome: CompareAndSet| outcome.is_set())
    }

    /// Sets when the row of a key expires; without arguments, never. Returns whether there is such a row.
    #[pyo3(signature = (key, *, expire_after = None, expire_at = None))]
    fn touch(
        &self,
        key: &Bound<'_, PyAny>,
        expire_after: Option<&Bound<'_, PyAny>>,
        expire_at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let bytes = row_bytes(key, self.is_text())?;
        let expiry = expiry(expire_after, expire_at)?.unwrap_or_else(Expiry::never);
        self.with(key.py(), |keyspace| keyspace.touch(&bytes, expiry))
    }

    /// How long the row of a key lives, in seconds: infinite if it does not expire, None if it is missing.
    fn time_to_live(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let bytes = row_bytes(key, self.is_text())?;
        let life = self.with(key.py(), |keyspace| keyspace.time_to_live(&bytes))?;
        Ok(match life {
            TimeToLive::Missing => None,
            TimeToLive::Unlimited => Some(f64::INFINITY),
            TimeToLive::Remaining(left) => Some(left.as_secs_f64()),
        })
    }

    /// Whether a key may exist, by the filters alone: False is certain, and no row is read.
    fn may_contain(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = row_bytes(key, self.is_text())?;
        self.with(key.py(), |keyspace| Ok(keyspace.may_contain(&bytes) == sidebloom::filter::Verdict::Maybe))
    }
}

readable!(Keyspace);
