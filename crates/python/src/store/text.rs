//! Keys and values on their way to Python.

use crate::error::invalid;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// The `bytes` of a key or a value, or, in a store of text, its `str`.
///
/// # Errors
/// `InvalidArgumentError` if the store has other bytes than text.
pub fn object<'py>(py: Python<'py>, bytes: &[u8], is_text: bool) -> PyResult<Bound<'py, PyAny>> {
    if !is_text {
        return Ok(PyBytes::new(py, bytes).into_any());
    }
    match str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => Err(invalid(format!(
            "the store has \"{:.64}\", which is no text: open it without text=True",
            bytes.escape_ascii().to_string()
        ))),
    }
}
