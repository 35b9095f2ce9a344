//! Walks over rows.

use super::handle::Handle;
use super::text::object;
use crate::error::or_raise;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use sidebloom::{Range, Result, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that are fetched at once, without the GIL.
const CHUNK: usize = 64;

/// What a walk shows of each row.
#[derive(Clone, Copy, PartialEq)]
pub enum Part {
    Key,
    Value,
    Both,
}

/// Where a walk gets its rows from.
pub trait Fetch: Send + Sync {
    /// The next rows, at most so many; none at the end.
    fn fetch(&mut self, most: usize, is_reverse: bool) -> Result<Vec<(Vec<u8>, Value)>>;
}

impl Fetch for Range {
    fn fetch(&mut self, most: usize, is_reverse: bool) -> Result<Vec<(Vec<u8>, Value)>> {
        let mut next = || if is_reverse { self.next_back() } else { self.next() };
        (0..most).map_while(|_| next()).collect()
    }
}

/// An iterator over keys, values or both, as of when it began. It goes on when its store is closed, until
/// somebody who has opened the store again removes files that it still needs: that raises IoError.
#[pyclass(module = "sidebloom", frozen, weakref)]
pub struct Rows {
    walk: Mutex<Walk>,
    handle: Arc<Handle>,
    part: Part,
    is_reverse: bool,
}

struct Walk {
    source: Option<Box<dyn Fetch>>,
    fetched: std::vec::IntoIter<(Vec<u8>, Value)>,
    /// Rows to fetch next: few at first, since many walks end early.
    chunk: usize,
}

impl Rows {
    pub fn new(handle: &Arc<Handle>, source: Option<Box<dyn Fetch>>, part: Part, is_reverse: bool) -> Self {
        let walk = Walk { source, fetched: Vec::new().into_iter(), chunk: 4 };
        Rows { walk: Mutex::new(walk), handle: Arc::clone(handle), part, is_reverse }
    }
}

impl Walk {
    fn next(&mut self, is_reverse: bool) -> Result<Option<(Vec<u8>, Value)>> {
        if self.fetched.len() == 0
            && let Some(source) = &mut self.source
        {
            let fetched = source.fetch(self.chunk, is_reverse)?;
            // The last row frees what the walk keeps of the store.
            if fetched.len() < self.chunk {
                self.source = None;
            }
            self.chunk = (self.chunk * 2).min(CHUNK);
            self.fetched = fetched.into_iter();
        }
        Ok(self.fetched.next())
    }
}

#[pymethods]
impl Rows {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.handle.check_process()?;
        // Most rows are there already. Only fetching others takes time, or another thread that does.
        let fetched = self.walk.try_lock().ok().and_then(|mut walk| walk.fetched.next());
        let next = fetched.map_or_else(
            || py.detach(|| self.walk.lock().unwrap_or_else(PoisonError::into_inner).next(self.is_reverse)),
            |row| Ok(Some(row)),
        );
        let Some((key, value)) = or_raise(next)? else { return Ok(None) };
        let object = |bytes: &[u8]| object(py, bytes, self.handle.is_text);
        Ok(Some(match self.part {
            Part::Key => object(&key)?.unbind(),
            Part::Value => object(&value)?.unbind(),
            Part::Both => (object(&key)?, object(&value)?).into_py_any(py)?,
        }))
    }

    /// Ends the walk, and frees what it keeps of the store.
    fn close(&self, py: Python<'_>) {
        if !self.handle.is_own() {
            return;
        }
        py.detach(|| {
            let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
            (walk.source, walk.fetched) = (None, Vec::new().into_iter());
        });
    }
}
