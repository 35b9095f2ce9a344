//! What makes a keyspace a `MutableMapping`.

use super::gather::for_each_chunk_of_pairs;
use super::keyspace::Keyspace;
use super::text::{check, object};
use crate::keys::row_bytes;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pymethods]
impl Keyspace {
    /// Counts the rows, by walking over all of them.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.view(None, None, None)?.count(py)
    }

    /// True, also without rows: to count them would take time.
    fn __bool__(&self) -> bool {
        true
    }

    /// Deletes a key and returns its value, or `default` if it is missing.
    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, pyo3::types::PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            return Err(pyo3::exceptions::PyTypeError::new_err("pop takes a key and at most one default"));
        }
        let bytes = row_bytes(key, self.is_text())?;
        match self.take(key.py(), &bytes, |value| check(value, self.is_text()))? {
            Some(value) => object(key.py(), &value, self.is_text()),
            None => default.get_item(0).map_err(|_| PyKeyError::new_err((key.clone().unbind(),))),
        }
    }

    /// Deletes the last row, and returns its key and value.
    fn popitem<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        loop {
            let last = self.with(py, |keyspace| keyspace.iter().last())?;
            let (key, _) = last.ok_or_else(|| PyKeyError::new_err("there are no rows"))?;
            let key_object = object(py, &key, self.is_text())?;
            // Otherwise another was faster.
            if let Some(value) = self.take(py, &key, |value| check(value, self.is_text()))? {
                return Ok((key_object, object(py, &value, self.is_text())?));
            }
        }
    }

    /// The value of a key. If it is missing, it is set to `default` first, which is then its value.
    fn setdefault<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (bytes, value) = (row_bytes(key, self.is_text())?, row_bytes(default, self.is_text())?);
        let found = self.with(key.py(), |keyspace| {
            loop {
                if let Some(found) = keyspace.get(&bytes)? {
                    return Ok(Some(found));
                }
                if keyspace.insert_new(&bytes, &value)? {
                    return Ok(None);
                }
            }
        })?;
        object(key.py(), found.as_deref().unwrap_or(&value), self.is_text())
    }

    /// Sets all rows of a dict, another mapping, or an iterable of pairs, and then those of `more`. They are
    /// written 16,384 at a time.
    #[pyo3(signature = (rows = None, /, **more))]
    fn update(
        &self,
        py: Python<'_>,
        rows: Option<&Bound<'_, PyAny>>,
        more: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        for rows in [rows, more.map(|more| more.as_any())].into_iter().flatten() {
            for_each_chunk_of_pairs(rows, self.is_text(), |rows| {
                self.write(py, |batch, keyspace| {
                    let mut batch = batch.keyspace(keyspace);
                    rows.iter().for_each(|(key, value)| batch.put(key, value));
                })
            })?;
        }
        Ok(())
    }

    /// Deletes all rows.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |keyspace| keyspace.delete_range(..))
    }
}
