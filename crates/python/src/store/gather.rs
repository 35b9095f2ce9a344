//! Many keys and rows from Python, with their bytes.

use super::text::object;
use crate::error::wrong_type;
use crate::keys::row_bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

/// Rows that are written at once.
const CHUNK: usize = 16_384;

/// Bytes of a Python object, kept alive or copied.
pub enum Held {
    Bytes(Py<PyBytes>),
    Text(Py<PyString>),
    Copied(Vec<u8>),
}

impl Held {
    /// # Errors
    /// The errors of [`row_bytes`].
    pub fn of(object: &Bound<'_, PyAny>, is_text: bool) -> PyResult<Self> {
        match (is_text, object.cast::<PyBytes>(), object.cast::<PyString>()) {
            (false, Ok(bytes), _) => Ok(Held::Bytes(bytes.clone().unbind())),
            (true, _, Ok(text)) => Ok(Held::Text(text.clone().unbind())),
            _ => Ok(Held::Copied(row_bytes(object, is_text)?.into_owned())),
        }
    }

    pub fn as_bytes<'a>(&'a self, py: Python<'_>) -> PyResult<&'a [u8]> {
        Ok(match self {
            Held::Bytes(bytes) => bytes.as_bytes(py),
            Held::Text(text) => text.to_str(py)?.as_bytes(),
            Held::Copied(bytes) => bytes,
        })
    }
}

/// All of an iterable.
pub fn held(objects: &Bound<'_, PyAny>, is_text: bool) -> PyResult<Vec<Held>> {
    if objects.is_instance_of::<PyBytes>() || objects.is_instance_of::<PyString>() {
        return Err(wrong_type("keys: an iterable of keys (for one key, a list of it)", objects));
    }
    objects.try_iter()?.map(|key| Held::of(&key?, is_text)).collect()
}

/// The value for each key of an iterable, or `default`.
pub fn values<'py>(
    keys: &Bound<'py, PyAny>,
    default: Option<Bound<'py, PyAny>>,
    is_text: bool,
    get: impl FnOnce(&[&[u8]]) -> PyResult<Vec<Option<sidebloom::Value>>>,
) -> PyResult<Bound<'py, PyList>> {
    let py = keys.py();
    let held = held(keys, is_text)?;
    let slices = held.iter().map(|key| key.as_bytes(py)).collect::<PyResult<Vec<&[u8]>>>()?;
    let values = PyList::empty(py);
    for value in get(&slices)? {
        match value {
            Some(value) => values.append(object(py, &value, is_text)?)?,
            None => values.append(default.as_ref())?,
        }
    }
    Ok(values)
}

/// A row that is to be written.
enum Pair<'py> {
    /// Two `bytes`, which the tuple keeps alive.
    Bytes(Bound<'py, PyTuple>),
    Held(Held, Held),
}

impl<'py> Pair<'py> {
    fn of(row: &Bound<'py, PyAny>, is_text: bool) -> PyResult<Self> {
        if !is_text
            && let Ok(pair) = row.cast_exact::<PyTuple>()
            && pair.len() == 2
            && pair.iter_borrowed().all(|part| part.is_instance_of::<PyBytes>())
        {
            return Ok(Pair::Bytes(pair.clone()));
        }
        let no_pair = || wrong_type("a pair of a key and a value", row);
        if row.is_instance_of::<PyString>() || row.is_instance_of::<PyBytes>() {
            return Err(no_pair());
        }
        let mut parts = row.try_iter().map_err(|_| no_pair())?;
        match (parts.next().transpose()?, parts.next().transpose()?, parts.next().transpose()?) {
            (Some(key), Some(value), None) => {
                Ok(Pair::Held(Held::of(&key, is_text)?, Held::of(&value, is_text)?))
            }
            _ => Err(no_pair()),
        }
    }

    fn as_bytes(&self, py: Python<'py>) -> PyResult<(&[u8], &[u8])> {
        match self {
            Pair::Bytes(pair) => {
                Ok((pair.get_borrowed_item(0)?.extract()?, pair.get_borrowed_item(1)?.extract()?))
            }
            Pair::Held(key, value) => Ok((key.as_bytes(py)?, value.as_bytes(py)?)),
        }
    }
}

/// Passes the pairs of a mapping, or of an iterable of pairs, on in chunks.
pub fn for_each_chunk_of_pairs(
    rows: &Bound<'_, PyAny>,
    is_text: bool,
    mut write: impl FnMut(&[(&[u8], &[u8])]) -> PyResult<()>,
) -> PyResult<()> {
    let py = rows.py();
    let mut rows = match rows.getattr_opt("items")? {
        Some(items) => items.call0()?.try_iter()?,
        None => rows.try_iter()?,
    };
    loop {
        let mut chunk = Vec::new();
        for row in rows.by_ref().take(CHUNK) {
            chunk.push(Pair::of(&row?, is_text)?);
        }
        if chunk.is_empty() {
            return Ok(());
        }
        write(&chunk.iter().map(|pair| pair.as_bytes(py)).collect::<PyResult<Vec<_>>>()?)?;
    }
}
