//! Keys in Arrow arrays of any library, by the Arrow PyCapsule interface: pyarrow, polars, DuckDB and others.
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use super::integer::{IntegerKey, widened};
use super::sink::{CHUNK, Sink};
use crate::error::exception;
use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

/// The arrays of an object, if it exports any.
///
/// # Errors
/// `TypeError` for arrays whose elements are no keys; `ValueError` for missing elements.
pub fn arrays(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    let arrays = if object.hasattr("__arrow_c_stream__")? {
        // Polars exports Python objects as their addresses.
        let dtype = object.getattr_opt("dtype")?;
        if dtype.is_some_and(|dtype| dtype.str().is_ok_and(|name| name == "Object")) {
            return Ok(None);
        }
        from_stream(&object.call_method0("__arrow_c_stream__")?)?
    } else if object.hasattr("__arrow_c_array__")? {
        vec![from_array(&object.call_method0("__arrow_c_array__")?)?]
    } else {
        return Ok(None);
    };
    for array in &arrays {
        check(array)?;
    }
    Ok(Some(arrays))
}

fn check(array: &ArrayRef) -> PyResult<()> {
    let (nulls, kind) = (array.logical_null_count(), array.data_type());
    if nulls > 0 {
        return Err(PyValueError::new_err(format!(
            "keys: {nulls} elements are null, which is no key; drop them first"
        )));
    }
    let is_text = matches!(
        kind,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    );
    if is_text || kind.is_integer() {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "no keys: an Arrow array of text, bytes or integers expected, not of {kind}; cast it first"
    )))
}

fn raised(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("keys: {error}"))
}

/// The structure that a capsule points to.
fn pointer<T>(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<NonNull<T>> {
    Ok(capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast())
}

fn from_array(exported: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let (schema, array) = exported.cast::<PyTuple>()?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
    let schema = pointer::<FFI_ArrowSchema>(&schema, c"arrow_schema")?;
    let array = pointer::<FFI_ArrowArray>(&array, c"arrow_array")?;
    // SAFETY: a capsule of this name points to such a structure, which lives as long as the capsule.
    let kind = DataType::try_from(unsafe { schema.as_ref() }).map_err(raised)?;
    // SAFETY: as above. The array moves out of its capsule, as the interface demands of a consumer.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    if array.is_released() {
        return Err(PyValueError::new_err("keys: this Arrow array has been read before"));
    }
    checked(array, kind)
}

/// Takes an array over, and looks through it: others have made it.
fn checked(array: FFI_ArrowArray, kind: DataType) -> PyResult<ArrayRef> {
    let import = || -> Result<ArrayRef, ArrowError> {
        // SAFETY: the producer promises an array of this kind. What can be seen to be wrong is seen below.
        let data = unsafe { from_ffi_and_data_type(array, kind) }?;
        data.validate_full()?;
        Ok(make_array(data))
    };
    // Arrays of another kind than their schema says panic.
    let imported = catch_unwind(AssertUnwindSafe(import));
    let no_array = |_| PyValueError::new_err("keys: an Arrow array that contradicts its schema");
    imported.map_err(no_array)?.map_err(raised)
}

fn from_stream(capsule: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    let stream = pointer::<FFI_ArrowArrayStream>(capsule, c"arrow_array_stream")?;
    // SAFETY: as in `from_array`.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema(), stream.get_next()) else {
        return Err(PyValueError::new_err("keys: this Arrow stream has been read before"));
    };
    let failed = |code| PyValueError::new_err(format!("keys: the Arrow stream ended with error {code}"));
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the callback belongs to this stream, and both structures are valid.
    match unsafe { get_schema(&mut stream, &mut schema) } {
        0 => {}
        code => return Err(failed(code)),
    }
    let kind = DataType::try_from(&schema).map_err(raised)?;
    let mut arrays = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        match unsafe { get_next(&mut stream, &mut array) } {
            0 if array.is_released() => return Ok(arrays),
            0 => arrays.push(checked(array, kind.clone())?),
            code => return Err(failed(code)),
        }
    }
}

pub fn for_each_chunk(py: Python<'_>, arrays: &[ArrayRef], sink: &mut dyn Sink) -> PyResult<()> {
    py.detach(|| arrays.iter().try_for_each(|array| pass_on(array, sink))).map_err(exception)
}

fn pass_on(array: &ArrayRef, sink: &mut dyn Sink) -> sidebloom::Result<()> {
    match array.data_type() {
        DataType::Utf8 => slices(array.as_string::<i32>().iter().map(|key| key.map(str::as_bytes)), sink),
        DataType::LargeUtf8 => {
            slices(array.as_string::<i64>().iter().map(|key| key.map(str::as_bytes)), sink)
        }
        DataType::Utf8View => slices(array.as_string_view().iter().map(|key| key.map(str::as_bytes)), sink),
        DataType::Binary => slices(array.as_binary::<i32>().iter(), sink),
        DataType::LargeBinary => slices(array.as_binary::<i64>().iter(), sink),
        DataType::BinaryView => slices(array.as_binary_view().iter(), sink),
        DataType::FixedSizeBinary(_) => slices(array.as_fixed_size_binary().iter(), sink),
        DataType::Int8 => integers::<Int8Type>(array, true, sink),
        DataType::Int16 => integers::<Int16Type>(array, true, sink),
        DataType::Int32 => integers::<Int32Type>(array, true, sink),
        DataType::Int64 => integers::<Int64Type>(array, true, sink),
        DataType::UInt8 => integers::<UInt8Type>(array, false, sink),
        DataType::UInt16 => integers::<UInt16Type>(array, false, sink),
        DataType::UInt32 => integers::<UInt32Type>(array, false, sink),
        DataType::UInt64 => integers::<UInt64Type>(array, false, sink),
        other => Err(sidebloom::Error::InvalidArgument(format!("keys of {other}"))),
    }
}

/// No element is null: `check` has seen to it.
fn slices<'a>(
    mut keys: impl Iterator<Item = Option<&'a [u8]>>,
    sink: &mut dyn Sink,
) -> sidebloom::Result<()> {
    loop {
        let chunk: Vec<&[u8]> = keys.by_ref().take(CHUNK).map(Option::unwrap_or_default).collect();
        if chunk.is_empty() {
            return Ok(());
        }
        sink.take(&chunk)?;
    }
}

fn integers<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    is_signed: bool,
    sink: &mut dyn Sink,
) -> sidebloom::Result<()> {
    let values = array.as_primitive::<T>().values().inner().as_slice();
    for records in values.chunks(CHUNK * size_of::<T::Native>()) {
        let keys: Vec<IntegerKey> =
            records.chunks(size_of::<T::Native>()).map(|record| widened(record, is_signed)).collect();
        sink.take_integers(&keys)?;
    }
    Ok(())
}
