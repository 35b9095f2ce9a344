//! Errors of the library as exceptions of `sidebloom.errors`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sidebloom::Error;
use std::path::Path;

/// The exception for an error.
pub fn exception(error: Error) -> PyErr {
    Python::attach(|py| build(py, &error).unwrap_or_else(|failure| failure))
}

/// The result with an exception for its error.
pub fn or_raise<T>(result: Result<T, Error>) -> PyResult<T> {
    result.map_err(exception)
}

/// An invalid argument, as an exception.
pub fn invalid(what: impl Into<String>) -> PyErr {
    exception(Error::InvalidArgument(what.into()))
}

/// A `TypeError` for an object of another type.
pub fn wrong_type(wanted: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let found =
        found.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{wanted} expected, not {found}"))
}

/// The exception for a closed store, guard, batch or transaction.
pub fn closed(what: &str) -> PyErr {
    named("ClosedError", format!("the {what} is closed"))
}

/// The exception of a class of `sidebloom.errors`.
fn named(class: &'static str, message: String) -> PyErr {
    Python::attach(|py| {
        class_of(py, class)
            .and_then(|class| class.call1((message,)))
            .map_or_else(|failure| failure, PyErr::from_value)
    })
}

fn class_of<'py>(py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || PyModule::import(py, "sidebloom.errors").map(Bound::unbind))?;
    module.bind(py).getattr(class)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let (class, path, offset) = describe(error);
    let value = class_of(py, class)?.call1((error.to_string(),))?;
    if let Some(path) = path {
        value.setattr("path", path)?;
    }
    if let Some(offset) = offset {
        value.setattr("offset", offset)?;
    }
    match error {
        Error::Io { source, path, .. } => {
            value.setattr("errno", source.raw_os_error())?;
            value.setattr("strerror", source.to_string())?;
            value.setattr("filename", path)?;
        }
        Error::Conflict { key } => value.setattr("key", key)?,
        _ => {}
    }
    Ok(PyErr::from_value(value))
}

/// The class of an error, and the file and the offset that it names.
fn describe(error: &Error) -> (&'static str, Option<&Path>, Option<u64>) {
    match error {
        Error::Io { path, .. } => ("IoError", Some(path), None),
        Error::Locked { path } => ("LockedError", Some(path), None),
        Error::LockLost { path } => ("LockLostError", Some(path), None),
        Error::Corruption { file, offset, .. } => ("CorruptionError", Some(file), Some(*offset)),
        Error::UnknownCode { file, offset, .. } => ("VersionError", Some(file), Some(*offset)),
        Error::UnsupportedVersion { file, .. } | Error::AmbiguousKeys { file, .. } => {
            ("VersionError", Some(file), None)
        }
        Error::NotAStore { path, .. } => ("NotAStoreError", Some(path), None),
        Error::NotAGuard { path, .. } => ("NotAGuardError", Some(path), None),
        Error::AlreadyExists { path } => ("AlreadyExistsError", Some(path), None),
        Error::ReadOnly => ("ReadOnlyError", None, None),
        Error::Poisoned { .. } => ("PoisonedError", None, None),
        Error::Forked => ("ForkedError", None, None),
        Error::Closing => ("ClosedError", None, None),
        Error::Conflict { .. } => ("ConflictError", None, None),
        Error::UnknownKeyspace { .. }
        | Error::KeyspaceExists { .. }
        | Error::InvalidKeyspaceName { .. }
        | Error::KeyspaceDropped { .. }
        | Error::ForeignKeyspace { .. } => ("KeyspaceError", None, None),
        Error::KeyTooLarge { .. }
        | Error::ValueTooLarge { .. }
        | Error::BatchTooLarge { .. }
        | Error::TransactionTooLarge { .. }
        | Error::FilterTooLarge { .. }
        | Error::TooManyKeys { .. } => ("TooLargeError", None, None),
        Error::FilterFull { .. } => ("FilterFullError", None, None),
        Error::FilterMismatch { .. } => ("FilterMismatchError", None, None),
        Error::OutOfMemory { .. } => ("OutOfMemoryError", None, None),
        Error::InvalidArgument(_)
        | Error::InvalidRange { .. }
        | Error::EmptyPrefix
        | Error::UnknownSavepoint
        | Error::Contradiction { .. }
        | Error::KeyOutOfOrder { .. }
        | Error::FeatureMissing { .. } => ("InvalidArgumentError", None, None),
        Error::Internal(_) => ("InternalError", None, None),
        _ => ("Error", None, None),
    }
}
