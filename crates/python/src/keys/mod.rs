//! Keys from Python: single ones, and many at once from iterables, numpy arrays, Arrow arrays and buffers.
//!
//! A key of a filter or a guard is `bytes`, or a `str`, which stands for its UTF-8, or an `int`, which stands
//! for its eight bytes in little-endian order (two's complement if it is negative). Numbers of all widths in
//! arrays are widened to eight bytes, so that `5`, `numpy.int32(5)` and `numpy.uint64(5)` are one key.

mod arrow;
mod buffer;
mod integer;
mod one;
mod sink;

pub use integer::IntegerKey;
pub use one::{AnyKey, row_bytes};
use sink::CHUNK;
pub use sink::{Sink, make_room};

use crate::error::wrong_type;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// Passes the keys of an object on, in order and in chunks.
///
/// # Errors
/// `TypeError` for an object without keys; what iterating it raises; the errors of the sink.
pub fn for_each_chunk(keys: &Bound<'_, PyAny>, sink: &mut dyn Sink) -> PyResult<()> {
    if keys.is_instance_of::<PyString>()
        || keys.is_instance_of::<PyBytes>()
        || keys.is_instance_of::<PyByteArray>()
    {
        return Err(wrong_type("keys: an iterable of keys or an array (for one key, a list of it)", keys));
    }
    if keys.hasattr("_mask")? {
        return Err(wrong_type("keys: an array without a mask (numpy.ma.compressed)", keys));
    }
    // Empty arrays may have no type.
    if keys.len().is_ok_and(|len| len == 0) {
        return Ok(());
    }
    if let Some(arrays) = arrow::arrays(keys)? {
        return arrow::for_each_chunk(keys.py(), &arrays, sink);
    }
    match buffer::Records::of(keys)? {
        Some(records) => records.for_each_chunk(keys.py(), sink),
        None => of_iterable(keys, sink),
    }
}

fn of_iterable(keys: &Bound<'_, PyAny>, sink: &mut dyn Sink) -> PyResult<()> {
    let py = keys.py();
    let Ok(mut iterator) = keys.try_iter() else {
        return Err(wrong_type("keys: an iterable or an array", keys));
    };
    let mut chunk: Vec<AnyKey> = Vec::with_capacity(CHUNK.min(keys.len().unwrap_or(CHUNK)));
    loop {
        chunk.clear();
        for key in iterator.by_ref().take(CHUNK) {
            chunk.push(AnyKey::of(&key?)?);
        }
        if chunk.is_empty() {
            return Ok(());
        }
        let slices = chunk.iter().map(|key| key.as_bytes(py)).collect::<PyResult<Vec<&[u8]>>>()?;
        py.detach(|| sink.take(&slices)).map_err(crate::error::exception)?;
    }
}
