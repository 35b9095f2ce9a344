//! Keys and values on their way to Python.

use crate::error::or_raise;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use sidebloom::Error;

/// The `bytes` of a key or a value, or, in a store of text, its `str`.
///
/// # Errors
/// `InvalidArgumentError` if the store has other bytes than text.
pub fn object<'py>(py: Python<'py>, bytes: &[u8], is_text: bool) -> PyResult<Bound<'py, PyAny>> {
    if !is_text {
        return Ok(PyBytes::new(py, bytes).into_any());
    }
    or_raise(check(bytes, is_text))?;
    Ok(PyString::from_bytes(py, bytes)?.into_any())
}

/// Whether a store of text can show these bytes.
///
/// # Errors
/// [`Error::InvalidArgument`] for other bytes than text.
pub fn check(bytes: &[u8], is_text: bool) -> Result<(), Error> {
    if !is_text || str::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "the store has \"{:.64}\", which is no text: open it without text=True",
        bytes.escape_ascii().to_string()
    )))
}
