//! One key.

use super::integer::IntegerKey;
use crate::error::{exception, wrong_type};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};
use sidebloom::{Error, MAX_VALUE_BYTES};
use std::borrow::Cow;

/// A key of a filter or a guard.
pub enum AnyKey {
    Bytes(Py<PyBytes>),
    Text(Py<PyString>),
    Integer(IntegerKey),
    Copied(Vec<u8>),
}

impl AnyKey {
    /// # Errors
    /// `TypeError` for another type; `OverflowError` for a number beyond 64 bits.
    pub fn of(key: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = key.cast::<PyBytes>() {
            return Ok(AnyKey::Bytes(bytes.clone().unbind()));
        }
        if let Ok(text) = key.cast::<PyString>() {
            return Ok(AnyKey::Text(text.clone().unbind()));
        }
        // Most numbers are plain ones, which need not be asked what they are.
        let is_integer = key.is_exact_instance_of::<PyInt>()
            || !key.is_instance_of::<PyBool>() && key.hasattr("__index__")?;
        if is_integer {
            return integer(key).map(AnyKey::Integer);
        }
        match copied(key) {
            Some(bytes) => bytes.map(AnyKey::Copied),
            None => Err(wrong_type("a key (bytes, str or int)", key)),
        }
    }

    /// # Errors
    /// `UnicodeEncodeError` for a `str` with lone surrogates.
    pub fn as_bytes<'a>(&'a self, py: Python<'_>) -> PyResult<&'a [u8]> {
        Ok(match self {
            AnyKey::Bytes(bytes) => bytes.as_bytes(py),
            AnyKey::Text(text) => text.to_str(py)?.as_bytes(),
            AnyKey::Integer(bytes) => bytes,
            AnyKey::Copied(bytes) => bytes,
        })
    }
}

fn integer(key: &Bound<'_, PyAny>) -> PyResult<IntegerKey> {
    let is_overflow = |error: &PyErr| error.is_instance_of::<PyOverflowError>(key.py());
    match key.extract::<i64>() {
        Ok(number) => Ok(number.to_le_bytes()),
        Err(error) if is_overflow(&error) => key
            .extract::<u64>()
            .map(u64::to_le_bytes)
            .map_err(|_| PyOverflowError::new_err("a number as a key has 64 bits: from -2**63 to 2**64 - 1")),
        Err(error) => Err(error),
    }
}

/// The bytes of a contiguous buffer of bytes, such as a `bytearray`; `None` for other objects.
fn copied(object: &Bound<'_, PyAny>) -> Option<PyResult<Vec<u8>>> {
    let buffer = PyUntypedBuffer::get(object).ok()?;
    let bytes = buffer.into_typed::<u8>().ok().filter(|bytes| bytes.dimensions() == 1)?;
    let len = bytes.len_bytes();
    if len > MAX_VALUE_BYTES {
        // Refused before it is copied.
        return Some(Err(exception(Error::ValueTooLarge { len, max: MAX_VALUE_BYTES })));
    }
    Some(bytes.to_vec(object.py()))
}

/// The bytes of a key or a value of a store.
pub type RowBytes<'a> = Cow<'a, [u8]>;

/// The bytes of a key or a value: of `bytes` and other buffers, or, in a store of text, of a `str`.
///
/// # Errors
/// `TypeError` for another type; `UnicodeEncodeError` for a `str` with lone surrogates.
pub fn row_bytes<'a>(object: &'a Bound<'_, PyAny>, is_text: bool) -> PyResult<RowBytes<'a>> {
    if is_text {
        return match object.cast::<PyString>() {
            Ok(text) => Ok(text.to_str()?.as_bytes().into()),
            Err(_) => Err(wrong_type("str (the store was opened with text=True)", object)),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().into());
    }
    match copied(object) {
        Some(bytes) => Ok(bytes?.into()),
        None => Err(wrong_type("bytes", object)),
    }
}
