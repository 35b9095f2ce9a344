//! Operations of a keyspace on many keys at once.

use super::expiry::expiry;
use super::gather::{for_each_chunk_of_pairs, values};
use super::keyspace::Keyspace;
use crate::keys::{for_each_chunk, row_bytes};
use crate::verdicts;
use pyo3::prelude::*;
use pyo3::types::PyList;

#[pymethods]
impl Keyspace {
    /// The value of each key of an iterable, in order; `default` for those that are missing. All are as of
    /// one moment.
    #[pyo3(signature = (keys, default = None, /))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        values(keys, default, self.is_text(), |slices| {
            self.with(keys.py(), |keyspace| keyspace.multi_get(slices))
        })
    }

    /// Whether each key may exist, by the filters alone, as a numpy array of bool; see `may_contain`. Keys
    /// are an iterable, or an array as for `Filter.contains_many`.
    fn may_contain_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (handle, index) = (&self.handle, self.index);
        handle.check_process()?;
        let mut answers = Vec::new();
        for_each_chunk(keys, &mut |keys: &[&[u8]]| {
            let verdicts =
                handle.with_open_keyspace(index, |keyspace| Ok(keyspace.may_contain_many(keys)))?;
            verdicts::extend(&mut answers, &verdicts);
            Ok(())
        })?;
        verdicts::array(keys.py(), &answers)
    }

    /// Sets each key that is missing to its value: `rows` is a dict, or an iterable of pairs. Returns a numpy
    /// array of bool: whether each key was missing. Of equal keys, the first is. The rows of a call are
    /// written 16,384 at a time.
    #[pyo3(signature = (rows, *, expire_after = None, expire_at = None))]
    fn insert_new_many<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        expire_after: Option<&Bound<'py, PyAny>>,
        expire_at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, expiry) = (rows.py(), expiry(expire_after, expire_at)?);
        let mut answers = Vec::new();
        for_each_chunk_of_pairs(rows, self.is_text(), |rows| {
            answers.extend(self.with(py, |keyspace| match expiry {
                Some(expiry) => keyspace.insert_new_many_with(rows, expiry),
                None => keyspace.insert_new_many(rows),
            })?);
            Ok(())
        })?;
        verdicts::array(py, &answers)
    }

    /// `insert_new_many` for keys that all get the same value: for what was seen. Keys are an iterable, or an
    /// array as for `Filter.contains_many`; they are written 4,096 at a time.
    #[pyo3(signature = (keys, value = None, *, expire_after = None, expire_at = None))]
    fn insert_new_keys<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        value: Option<&Bound<'py, PyAny>>,
        expire_after: Option<&Bound<'py, PyAny>>,
        expire_at: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, expiry) = (keys.py(), expiry(expire_after, expire_at)?);
        let value = value.map(|value| row_bytes(value, self.is_text())).transpose()?.unwrap_or_default();
        // Of each chunk, the store is asked for anew: it may be closed in between.
        let (handle, index) = (&self.handle, self.index);
        handle.check_process()?;
        let mut answers = Vec::new();
        for_each_chunk(keys, &mut |keys: &[&[u8]]| {
            let rows: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (*key, &*value)).collect();
            answers.extend(handle.with_open_keyspace(index, |keyspace| match expiry {
                Some(expiry) => keyspace.insert_new_many_with(&rows, expiry),
                None => keyspace.insert_new_many(&rows),
            })?);
            Ok(())
        })?;
        verdicts::array(py, &answers)
    }
}
