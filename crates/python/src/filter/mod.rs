//! `Filter`: approximate membership, in memory or in a mapped file.

mod build;
mod state;

use crate::error::{invalid, or_raise, wrong_type};
use crate::fork::Opener;
use crate::keys::{AnyKey, IntegerKey, Sink, for_each_chunk};
use crate::verdicts;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use sidebloom::Error;
use sidebloom::filter::{AnyFilter, Bloom, Verdict};
use state::State;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A filter of keys: `key in filter` is False only for keys that were not added, and wrongly True for a small
/// share of them.
///
/// A key is bytes, a str (its UTF-8) or an int of 64 bits. Use `Filter.build` for a new filter and
/// `Filter.open` for one in a file. Filters can be used by many threads at once; queries of many keys run
/// without the GIL.
#[pyclass(module = "sidebloom", frozen, weakref)]
pub struct Filter {
    state: RwLock<State>,
    opener: Opener,
}

impl Filter {
    fn new(state: State) -> Self {
        Filter { state: RwLock::new(state), opener: Opener::this_process() }
    }

    /// Call it without the GIL: others may change the filter for as long as a chunk of keys takes.
    ///
    /// # Errors
    /// [`Error::Forked`] in a forked process whose parent was changing the filter, so that nobody unlocks it.
    fn read(&self) -> sidebloom::Result<RwLockReadGuard<'_, State>> {
        match self.state.try_read() {
            Ok(state) => Ok(state),
            Err(_) if !self.opener.is_current() => Err(Error::Forked),
            Err(_) => Ok(self.state.read().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// As [`read`](Self::read).
    fn write(&self) -> sidebloom::Result<RwLockWriteGuard<'_, State>> {
        match self.state.try_write() {
            Ok(state) => Ok(state),
            Err(_) if !self.opener.is_current() => Err(Error::Forked),
            Err(_) => Ok(self.state.write().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Asks something that is answered soon: with the GIL, unless it has to wait.
    fn query<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl Fn(&State) -> sidebloom::Result<T> + Sync,
    ) -> PyResult<T> {
        or_raise(match self.state.try_read() {
            Ok(state) => ask(&state),
            Err(_) => py.detach(|| ask(&*self.read()?)),
        })
    }

    /// Changes the filter, without the GIL.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut AnyFilter) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        or_raise(py.detach(|| change(self.write()?.held()?)))
    }
}

#[pymethods]
impl Filter {
    /// Builds a filter of all keys of an iterable, an array (numpy, pyarrow, polars), or a file, whose lines
    /// are the keys. A str or a path is the path of a file.
    ///
    /// kind: "parity" (the smallest; takes no more keys), "blocked" (one cache line a query; takes more
    /// keys), "bloom" (can be combined with others), "counting" (keys can be removed), "scalable" (for any
    /// number of keys) or "small" (for messages: up to 65,536 keys).
    /// fpp: the share of absent keys that are wrongly True, above 0 and below 1.
    /// capacity: how many keys it will hold; by default, as many as `keys` has. "parity" and "small" need no
    /// capacity.
    /// seed: of the hash; by default 0, and a secret key for "counting". Filters are combined only if theirs
    /// are equal.
    #[staticmethod]
    #[pyo3(signature = (keys, *, kind = "parity", fpp = 0.01, capacity = None, seed = None))]
    fn build(
        keys: &Bound<'_, PyAny>,
        kind: &str,
        fpp: f64,
        capacity: Option<u64>,
        seed: Option<u64>,
    ) -> PyResult<Self> {
        let plan = build::Plan { kind: kind.parse()?, fpp, capacity, seed };
        plan.build(keys).map(|filter| Filter::new(State::of(filter)))
    }

    /// Opens the file of a filter that `save`, or the command line, wrote.
    ///
    /// mapped: keep it in the file, shared with other processes, and read only what queries need; it then
    /// takes no more keys. Otherwise the file is read into memory.
    #[staticmethod]
    #[pyo3(signature = (path, *, mapped = true))]
    fn open(py: Python<'_>, path: PathBuf, mapped: bool) -> PyResult<Self> {
        or_raise(py.detach(|| State::open(path, mapped))).map(Filter::new)
    }

    /// The filter that `to_bytes` wrote. `max_bytes` limits its size in memory.
    #[staticmethod]
    #[pyo3(signature = (data, *, max_bytes = 1073741824))]
    fn from_bytes(py: Python<'_>, data: &Bound<'_, PyBytes>, max_bytes: u64) -> PyResult<Self> {
        let bytes = data.as_bytes();
        let filter = py.detach(|| sidebloom::receive_filter(&mut &bytes[..], max_bytes));
        or_raise(filter.map_err(Into::into)).map(|filter| Filter::new(State::of(filter)))
    }

    /// The filter in its compressed form for sending, for `from_bytes`.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut wire = Vec::new();
        let sent =
            py.detach(|| self.read()?.with_held(|filter| Ok(sidebloom::send_filter(filter, &mut wire)?)));
        or_raise(sent)?;
        Ok(PyBytes::new(py, &wire))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, owned) = (key.py(), AnyKey::of(key)?);
        let key = owned.as_bytes(py)?;
        self.query(py, |state| state.contains(key)).map(|verdict| verdict == Verdict::Maybe)
    }

    /// `key in filter` for each key of an iterable or an array, as a numpy array of bool. Arrays are those of
    /// numpy (bytes "S", text "U", integers, or rows of bytes), pyarrow, polars and other Arrow libraries,
    /// and buffers.
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let mut query =
            Query { filter: self, answers: Vec::with_capacity(keys.len().map_or(0, |len| len.min(1 << 20))) };
        for_each_chunk(keys, &mut query)?;
        verdicts::array(keys.py(), &query.answers)
    }

    /// Adds a key. Returns whether the filter did not have it already.
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, owned) = (key.py(), AnyKey::of(key)?);
        let key = owned.as_bytes(py)?;
        self.change(py, |filter| Ok(filter.insert(key)?))
    }

    /// Adds all keys of an iterable or an array.
    ///
    /// If the filter is full, raises FilterFullError; the keys before that one are in it.
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(keys.py(), |_| Ok(()))?;
        for_each_chunk(keys, &mut |keys: &[&[u8]]| Ok(self.write()?.held()?.insert_many(keys)?))
    }

    /// Removes a key once, from a filter of kind "counting". Returns False if it was certainly not there.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, owned) = (key.py(), AnyKey::of(key)?);
        let key = owned.as_bytes(py)?;
        self.change(py, |filter| Ok(filter.remove(key)?))
    }

    /// The filter of the keys of both. Both are of kind "bloom" or "counting", built with the same capacity,
    /// fpp and seed; the result is of kind "bloom".
    fn union(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.combined(py, other, |a, b| a.union(b))
    }

    /// A filter that has every key of both; see `union`. Other keys may be in it, as in any filter.
    fn intersection(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.combined(py, other, |a, b| a.intersection(b))
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.union(py, other)
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.intersection(py, other)
    }

    /// Writes the filter to a file, durably. An existing file is replaced. Returns the size in bytes.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        or_raise(py.detach(|| {
            let saved = self.read()?.save(&path)?;
            self.write()?.note(&saved);
            Ok(saved.bytes)
        }))
    }

    /// Compares a mapped filter with all its checksums, so that later queries need not.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py.detach(|| self.read()?.verify()))
    }

    /// Pickles the path of the file: only a filter that was saved, or opened, and did not change since.
    /// Whoever unpickles it gets the filter that the file then has.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (PathBuf,))> {
        let path = self.path(py)?.ok_or_else(|| {
            PyTypeError::new_err(
                "a filter is pickled by the path of its file: save it first, or use to_bytes",
            )
        })?;
        Ok((PyType::new::<Filter>(py).getattr("open")?, (path,)))
    }

    /// The number of keys, as far as the kind can tell.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.query(py, |state| Ok(state.keys()))?;
        Ok(usize::try_from(keys).unwrap_or(usize::MAX))
    }

    /// A filter without keys is True, too.
    fn __bool__(&self) -> bool {
        true
    }

    /// "parity", "blocked-bloom", "bloom", "counting", "scalable" or "small".
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.query(py, |state| Ok(state.name()))
    }

    /// The share of absent keys that are wrongly True now. For a mapped filter, when it was saved.
    #[getter]
    fn fpp(&self, py: Python<'_>) -> PyResult<f64> {
        self.query(py, |state| Ok(state.fpr()))
    }

    /// Its size in bytes, in memory or in the file.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.query(py, |state| Ok(state.bytes()))
    }

    /// How many keys it can hold; None if that has no limit, or for a mapped filter, which takes none.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.query(py, |state| Ok(state.capacity()))
    }

    /// The file that this filter was saved to or opened from, unless it has changed since; None without one.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        self.query(py, |state| Ok(state.path().map(Path::to_path_buf)))
    }

    /// Whether it stays in its file.
    #[getter]
    fn mapped(&self, py: Python<'_>) -> PyResult<bool> {
        self.query(py, |state| Ok(state.is_mapped()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let of = |state: &State| Ok((state.name(), state.keys(), state.fpr()));
        let (kind, keys, fpp) = self.query(py, of)?;
        Ok(format!("<sidebloom.Filter {kind} of {keys} keys, fpp {fpp:.2e}>"))
    }
}

impl Filter {
    fn combined(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        combine: impl Fn(&Bloom, &Bloom) -> Result<Bloom, sidebloom::filter::Error> + Sync,
    ) -> PyResult<Self> {
        let Ok(other) = other.cast::<Filter>() else { return Err(wrong_type("a Filter", other)) };
        let other = other.get();
        let combined = py.detach(|| -> sidebloom::Result<Option<Bloom>> {
            // One lock at a time: a writer that waits between two would wait for the first, and the second
            // for the writer.
            let one = self.read()?.bloom()?;
            let two = other.read()?.bloom()?;
            Ok(one.zip(two).map(|(one, two)| combine(&one, &two)).transpose()?)
        });
        match or_raise(combined)? {
            Some(bloom) => Ok(Filter::new(State::of(AnyFilter::Bloom(bloom)))),
            None => Err(invalid("only filters of kind \"bloom\" and \"counting\" can be combined")),
        }
    }
}

/// Asks a filter for keys.
struct Query<'a> {
    filter: &'a Filter,
    answers: Vec<bool>,
}

impl Query<'_> {
    fn ask<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> sidebloom::Result<()> {
        verdicts::extend(&mut self.answers, &self.filter.read()?.contains_many(keys)?);
        Ok(())
    }
}

impl Sink for Query<'_> {
    fn take(&mut self, keys: &[&[u8]]) -> sidebloom::Result<()> {
        self.ask(keys)
    }

    fn take_integers(&mut self, keys: &[IntegerKey]) -> sidebloom::Result<()> {
        self.ask(keys)
    }
}
