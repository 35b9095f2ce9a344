//! `Keyspace`: the rows of one name in a store, and the base of `Store`.

use super::bounds::Bounds;
use super::handle::{Handle, KeyspaceIndex};
use super::rows::Fetch;
use super::text::object;
use super::views::{Source, View};
use crate::error::{invalid, wrong_type};
use crate::keys::row_bytes;
use pyo3::prelude::*;
use sidebloom::{Batch, Value};
use std::sync::Arc;

/// Rows of a store: a mutable mapping of bytes to bytes (or of str to str in a store of text), in the order
/// of the keys.
///
/// Open one with `store.keyspace(name)`. A store is one itself. All methods can be called by many threads at
/// once, and run without the GIL.
#[pyclass(module = "sidebloom", frozen, subclass, weakref)]
pub struct Keyspace {
    pub handle: Arc<Handle>,
    pub index: KeyspaceIndex,
}

impl Keyspace {
    pub fn is_text(&self) -> bool {
        self.handle.is_text
    }

    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&sidebloom::Keyspace) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        self.handle.with_keyspace(py, self.index, work)
    }

    /// Which keyspace of this store an object is.
    ///
    /// # Errors
    /// `TypeError` for another object; `InvalidArgumentError` for a keyspace of another store.
    pub fn index_in(object: &Bound<'_, PyAny>, store: &Arc<Handle>) -> PyResult<KeyspaceIndex> {
        let Ok(keyspace) = object.cast::<Keyspace>() else { return Err(wrong_type("a Keyspace", object)) };
        let keyspace = keyspace.get();
        if Arc::ptr_eq(&keyspace.handle, store) {
            Ok(keyspace.index)
        } else {
            Err(invalid("the keyspace belongs to another store"))
        }
    }

    /// Writes a batch, and fails as a whole.
    pub fn write(
        &self,
        py: Python<'_>,
        fill: impl FnOnce(&mut Batch, &sidebloom::Keyspace) + Send,
    ) -> PyResult<()> {
        self.with(py, |keyspace| {
            let mut batch = Batch::new();
            fill(&mut batch, keyspace);
            keyspace.write(batch)
        })
    }

    pub fn value<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let bytes = row_bytes(key, self.is_text())?;
        let value = self.with(key.py(), |keyspace| keyspace.get(&bytes))?;
        value.map(|value| object(key.py(), &value, self.is_text())).transpose()
    }

    /// Deletes a key, and returns the value that it had. `check` may refuse a value, which then stays.
    pub fn take(
        &self,
        py: Python<'_>,
        key: &[u8],
        check: impl Fn(&[u8]) -> sidebloom::Result<()> + Sync,
    ) -> PyResult<Option<Value>> {
        self.with(py, |keyspace| {
            loop {
                let Some(value) = keyspace.get(key)? else { return Ok(None) };
                check(&value)?;
                // Otherwise somebody has changed it meanwhile.
                if keyspace.compare_and_set(key, Some(&value), None)?.is_set() {
                    return Ok(Some(value));
                }
            }
        })
    }

    pub fn view(
        &self,
        prefix: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<View> {
        let bounds = Bounds::of(prefix, start, stop, self.is_text())?;
        Ok(View::new(Live(Arc::clone(&self.handle), self.index), bounds))
    }
}

/// The rows as of when a walk begins.
struct Live(Arc<Handle>, KeyspaceIndex);

impl Source for Live {
    fn handle(&self) -> &Arc<Handle> {
        &self.0
    }

    fn walk(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<Box<dyn Fetch>> {
        self.0.with_keyspace(py, self.1, |keyspace| {
            Ok(Box::new(keyspace.range(bounds.ends())) as Box<dyn Fetch>)
        })
    }

    fn get(&self, py: Python<'_>, key: &[u8]) -> PyResult<Option<Value>> {
        self.0.with_keyspace(py, self.1, |keyspace| keyspace.get(key))
    }

    fn count(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<u64> {
        self.0.with_keyspace(py, self.1, |keyspace| keyspace.range(bounds.ends()).count())
    }
}
