//! `Snapshot`: the rows of one moment.

use super::bounds::Bounds;
use super::gather::values;
use super::handle::Handle;
use super::readable::readable;
use super::rows::{Fetch, Part, Rows};
use super::text::object;
use super::views::{Items, Keys, Source, Values, View};
use crate::error::{closed, or_raise};
use crate::keys::row_bytes;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sidebloom::Value;
use std::sync::{Arc, PoisonError, RwLock};

/// The rows of a keyspace as of one moment: a mapping that nobody changes. It keeps the files that it reads;
/// end a `with` block, or call `close`, when it has served. It can be read when its
/// store is closed, as long as nobody opens the store again and removes its files.
#[pyclass(module = "sidebloom", frozen, weakref)]
pub struct Snapshot(Arc<Shared>);

struct Shared {
    handle: Arc<Handle>,
    snapshot: RwLock<Option<sidebloom::Snapshot>>,
}

impl Snapshot {
    pub fn new(handle: &Arc<Handle>, snapshot: sidebloom::Snapshot) -> Self {
        Snapshot(Arc::new(Shared { handle: Arc::clone(handle), snapshot: RwLock::new(Some(snapshot)) }))
    }

    fn value<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = row_bytes(key, self.is_text())?;
        let value = self.0.with(key.py(), |snapshot| snapshot.get(&bytes))?;
        value.map(|value| object(key.py(), &value, self.is_text())).transpose()
    }

    fn is_text(&self) -> bool {
        self.0.handle.is_text
    }

    fn view(
        &self,
        prefix: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<View> {
        let bounds = Bounds::of(prefix, start, stop, self.is_text())?;
        Ok(View::new(Arc::clone(&self.0), bounds))
    }
}

impl Shared {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&sidebloom::Snapshot) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        self.handle.check_process()?;
        let done =
            py.detach(|| self.snapshot.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(work));
        or_raise(done.ok_or_else(|| closed("snapshot"))?)
    }
}

impl Source for Arc<Shared> {
    fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    fn walk(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<Box<dyn Fetch>> {
        self.with(py, |snapshot| Ok(Box::new(snapshot.range(bounds.ends())) as Box<dyn Fetch>))
    }

    fn get(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Value>> {
        self.with(py, |snapshot| snapshot.get(key))
    }

    fn count(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<u64> {
        self.with(py, |snapshot| snapshot.range(bounds.ends()).count())
    }
}

#[pymethods]
impl Snapshot {
    /// The value of each key of an iterable, in order; `default` for those that are missing.
    #[pyo3(signature = (keys, default = None, /))]
    fn get_many<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        values(keys, default, self.is_text(), |slices| {
            self.0.with(keys.py(), |snapshot| slices.iter().map(|key| snapshot.get(key)).collect())
        })
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let bytes = row_bytes(key, self.is_text())?;
        self.0.with(key.py(), |snapshot| snapshot.contains_key(&bytes))
    }

    /// Counts the rows, by walking over all of them.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.view(None, None, None)?.count(py)
    }

    /// True, also without rows: to count them would take time.
    fn __bool__(&self) -> bool {
        true
    }

    /// Frees what it keeps of the store.
    fn close(&self, py: Python<'_>) {
        if !self.0.handle.is_own() {
            return;
        }
        py.detach(|| drop(self.0.snapshot.write().unwrap_or_else(PoisonError::into_inner).take()));
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}

readable!(Snapshot);
