//! Views of the rows of a keyspace, a snapshot or a transaction, as `dict` has them.

use super::bounds::Bounds;
use super::handle::Handle;
use super::rows::{Fetch, Part, Rows};
use crate::error::or_raise;
use crate::keys::row_bytes;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PySet, PyTuple};
use sidebloom::{Result, Value};
use std::sync::Arc;

/// Where a view's rows are.
pub trait Source: Send + Sync {
    fn handle(&self) -> &Arc<Handle>;
    /// A walk over the rows of a range, as of now.
    fn walk(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<Box<dyn Fetch>>;
    fn get(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Value>>;
    /// The number of rows of a range.
    fn count(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<u64>;
}

/// The rows of a range.
pub struct View {
    source: Box<dyn Source>,
    bounds: Bounds,
}

impl View {
    pub fn new(source: impl Source + 'static, bounds: Bounds) -> Self {
        View { source: Box::new(source), bounds }
    }

    pub fn rows(&self, py: Python<'_>, part: Part, is_reverse: bool) -> PyResult<Rows> {
        let handle = self.source.handle();
        handle.check_process()?;
        let walk = if self.bounds.is_empty { None } else { Some(self.source.walk(py, &self.bounds)?) };
        Ok(Rows::new(handle, walk, part, is_reverse))
    }

    /// Whether a row has this value.
    fn has_value(&self, py: Python<'_>, wanted: &[u8]) -> PyResult<bool> {
        if self.bounds.is_empty {
            return Ok(false);
        }
        let mut walk = self.source.walk(py, &self.bounds)?;
        or_raise(py.detach(|| -> Result<bool> {
            loop {
                let rows = walk.fetch(256, false)?;
                let has_it = rows.iter().any(|(_, value)| **value == *wanted);
                if has_it || rows.is_empty() {
                    return Ok(has_it);
                }
            }
        }))
    }

    /// Counts the rows, by walking over them.
    pub fn count(&self, py: Python<'_>) -> PyResult<usize> {
        let count = if self.bounds.is_empty { 0 } else { self.source.count(py, &self.bounds)? };
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The value of a key of the range.
    fn get(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        let bytes = row_bytes(key, self.source.handle().is_text)?;
        if self.bounds.contains(&bytes) { self.source.get(key.py(), &bytes) } else { Ok(None) }
    }

    fn is_text(&self) -> bool {
        self.source.handle().is_text
    }
}

macro_rules! view {
    ($(#[$doc:meta])* $name:ident, $part:expr, |$view:ident, $object:ident| $contains:expr) => {
        $(#[$doc])*
        #[pyclass(module = "sidebloom", frozen)]
        pub struct $name(pub View);

        #[pymethods]
        impl $name {
            fn __iter__(&self, py: Python<'_>) -> PyResult<Rows> {
                self.0.rows(py, $part, false)
            }

            fn __reversed__(&self, py: Python<'_>) -> PyResult<Rows> {
                self.0.rows(py, $part, true)
            }

            /// Counts the rows, by walking over them.
            fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                self.0.count(py)
            }

            fn __contains__(&self, $object: &Bound<'_, PyAny>) -> PyResult<bool> {
                let $view = &self.0;
                $contains
            }
        }
    };
}

view!(
    /// The keys of a range, in order; `reversed` walks from the last one.
    Keys, Part::Key, |view, key| Ok(view.get(key)?.is_some())
);
view!(
    /// The values of a range, in the order of their keys.
    Values, Part::Value, |view, value| {
        let bytes = row_bytes(value, view.is_text())?.into_owned();
        view.has_value(value.py(), &bytes)
    }
);
view!(
    /// The keys and values of a range, in the order of the keys.
    Items, Part::Both, |view, row| {
        let Ok(row) = row.cast::<PyTuple>() else { return Ok(false) };
        let Ok((key, value)) = row.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else { return Ok(false) };
        let found = view.get(&key)?;
        Ok(found.is_some_and(|found| row_bytes(&value, view.is_text()).is_ok_and(|bytes| *found == *bytes)))
    }
);

/// What a view of keys or of rows has of a set: the operators, which give a `set`.
macro_rules! set_view {
    ($name:ident, $part:expr) => {
        impl $name {
            fn set<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                py.get_type::<PySet>().call1((self.0.rows(py, $part, false)?,))
            }
        }

        #[pymethods]
        impl $name {
            fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.set(other.py())?.bitand(set_of(other)?)
            }

            fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.__and__(other)
            }

            fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.set(other.py())?.bitor(set_of(other)?)
            }

            fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.__or__(other)
            }

            fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.set(other.py())?.bitxor(set_of(other)?)
            }

            fn __rxor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.__xor__(other)
            }

            fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.set(other.py())?.sub(set_of(other)?)
            }

            fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                set_of(other)?.sub(self.set(other.py())?)
            }

            fn __richcmp__<'py>(
                &self,
                other: &Bound<'py, PyAny>,
                op: CompareOp,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = other.py();
                if !other.is_instance(&py.import("collections.abc")?.getattr("Set")?)? {
                    return Ok(py.NotImplemented().into_bound(py));
                }
                self.set(other.py())?.rich_compare(set_of(other)?, op)
            }

            /// Whether the other iterable has none of them.
            #[pyo3(signature = (other, /))]
            fn isdisjoint(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
                self.__and__(other)?.is_empty()
            }
        }
    };
}

set_view!(Keys, Part::Key);
set_view!(Items, Part::Both);

/// The elements of another view or set.
fn set_of<'py>(other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    other.py().get_type::<PySet>().call1((other,))
}
