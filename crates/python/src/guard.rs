//! `Guard`: which keys a database has.

use crate::error::{closed, exception, or_raise};
use crate::fork::Opener;
use crate::keys::{AnyKey, for_each_chunk, make_room};
use crate::store::{durability, expiry, filter_policy};
use crate::verdicts;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sidebloom::filter::Verdict;
use sidebloom::guard::{self, GuardOptions};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Knows which keys a database has: False is certain, and saves asking it. It lives in a directory of its
/// own, and survives crashes. One process at a time writes it.
///
/// A key is bytes, a str (its UTF-8) or an int of 64 bits. Open one with `Guard(path)`, or build one with
/// `Guard.build(path, keys)`.
#[pyclass(module = "sidebloom", frozen, weakref)]
pub struct Guard(Arc<Shared>);

struct Shared {
    /// None once it was closed. Nobody holds the lock while the guard works: the commit of a database, which
    /// may take long, is called by it, and may use or close the guard.
    guard: RwLock<Option<Arc<guard::Guard>>>,
    opener: Opener,
}

impl Guard {
    fn of(guard: guard::Guard) -> Self {
        let guard = RwLock::new(Some(Arc::new(guard)));
        Guard(Arc::new(Shared { guard, opener: Opener::this_process() }))
    }

    /// Runs `work` with a key, without the GIL.
    fn with_key<T: Send>(
        &self,
        key: &Bound<'_, PyAny>,
        work: impl FnOnce(&guard::Guard, &[u8]) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        let (py, owned) = (key.py(), AnyKey::of(key)?);
        let bytes = owned.as_bytes(py)?;
        self.0.with(py, |guard| work(guard, bytes))
    }
}

impl Shared {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&guard::Guard) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        self.opener.check()?;
        or_raise(py.detach(|| self.with_detached(work)).ok_or_else(|| closed("guard"))?)
    }

    fn with_detached<T>(&self, work: impl FnOnce(&guard::Guard) -> T) -> Option<T> {
        let guard = self.guard.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(work(&guard))
    }
}

/// What a process needs before it opens files.
fn prepare() -> sidebloom::Result<()> {
    sidebloom::fs::fill_standard_descriptors()?;
    sidebloom::fs::catch_sigbus()
}

fn options(read_only: bool, durability_name: &str, bits_per_key: Option<f64>) -> PyResult<GuardOptions> {
    let options = GuardOptions::new().read_only(read_only).durability(durability(durability_name)?);
    Ok(match bits_per_key {
        Some(bits) => options.filter_policy(filter_policy(bits)),
        None => options,
    })
}

#[pymethods]
impl Guard {
    /// Opens a guard.
    #[new]
    #[pyo3(signature = (path, *, read_only = false, durability = "sync"))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool, durability: &str) -> PyResult<Self> {
        let options = options(read_only, durability, None)?;
        or_raise(py.detach(|| {
            prepare()?;
            options.open(&path)
        }))
        .map(Guard::of)
    }

    /// Builds a guard of all keys of the database: an iterable or an array, as for `Filter.build`. A key that
    /// occurs several times is that many rows.
    #[staticmethod]
    #[pyo3(signature = (path, keys, *, bits_per_key = None, durability = "sync"))]
    fn build(
        path: PathBuf,
        keys: &Bound<'_, PyAny>,
        bits_per_key: Option<f64>,
        durability: &str,
    ) -> PyResult<Self> {
        let options = options(false, durability, bits_per_key)?;
        // One after the other, since a vector for each would take more memory than most keys do.
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for_each_chunk(keys, &mut |keys: &[&[u8]]| {
            let more = keys.iter().map(|key| key.len()).sum();
            make_room(&mut bytes, more)?;
            make_room(&mut ends, keys.len())?;
            for key in keys {
                bytes.extend_from_slice(key);
                ends.push(bytes.len());
            }
            Ok(())
        })?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let keys_of = starts.zip(&ends).map(|(start, &end)| bytes.get(start..end).unwrap_or_default());
        or_raise(keys.py().detach(|| prepare().and_then(|()| options.build(&path, keys_of)))).map(Guard::of)
    }

    /// Whether the database may have a row with this key.
    fn may_contain(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_key(key, |guard, key| Ok(guard.may_contain(key) == Verdict::Maybe))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.may_contain(key)
    }

    /// `may_contain` for each key of an iterable or an array, as a numpy array of bool.
    fn may_contain_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let shared = &self.0;
        shared.opener.check()?;
        let mut answers = Vec::new();
        for_each_chunk(keys, &mut |keys: &[&[u8]]| {
            let verdicts = shared.with_detached(|guard| guard.may_contain_many(keys));
            verdicts::extend(&mut answers, &verdicts.ok_or(sidebloom::Error::Closing)?);
            Ok(())
        })?;
        verdicts::array(keys.py(), &answers)
    }

    /// Whether a row with this key was inserted, exactly (but for keys whose 128-bit hashes collide).
    fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with_key(key, |guard, key| guard.contains(key))
    }

    /// How many rows have this key.
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.with_key(key, |guard, key| guard.count(key))
    }

    /// Notes a row with this key. Call it before the database commits the row, or use `transaction`.
    fn insert(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.with_key(key, |guard, key| guard.insert(key))
    }

    /// Notes a key unless it is known. Returns whether it is new.
    #[pyo3(signature = (key, *, expire_after = None, expire_at = None))]
    fn insert_new(
        &self,
        key: &Bound<'_, PyAny>,
        expire_after: Option<&Bound<'_, PyAny>>,
        expire_at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let expiry = expiry(expire_after, expire_at)?;
        self.with_key(key, |guard, key| {
            let mut changes = guard::Changes::new();
            match expiry {
                Some(expiry) => changes.insert_new_with(key, guard.moment_of(expiry)?),
                None => changes.insert_new(key),
            };
            Ok(guard.write_each(&changes)?.first().copied().unwrap_or_default())
        })
    }

    /// Forgets a row with this key. Call it after the database has deleted the row, or use `transaction`.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.with_key(key, |guard, key| guard.remove(key))
    }

    /// Notes a row for each key of an iterable or an array, 4,096 at a time.
    fn insert_many(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let shared = &self.0;
        shared.opener.check()?;
        for_each_chunk(keys, &mut |keys: &[&[u8]]| {
            let mut changes = guard::Changes::new();
            keys.iter().for_each(|key| _ = changes.insert(key));
            shared.with_detached(|guard| guard.write(&changes)).unwrap_or(Err(sidebloom::Error::Closing))
        })
    }

    /// Changes that go with a transaction of the database: `commit` is called when the `with` block ends
    /// without an exception, after the insertions were noted and before the removals are.
    ///
    ///     with guard.transaction(connection.commit) as changes:
    ///         connection.execute("INSERT INTO songs VALUES (?)", (title,))
    ///         changes.insert(title)
    fn transaction(&self, commit: Py<PyAny>) -> PyResult<GuardTransaction> {
        self.0.opener.check()?;
        Ok(GuardTransaction { guard: Arc::clone(&self.0), commit, changes: Mutex::new(Some(Vec::new())) })
    }

    /// Makes what was noted so far survive a power failure.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.0.with(py, guard::Guard::sync)
    }

    /// The directory.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<PathBuf> {
        self.0.with(py, |guard| Ok(guard.path().to_path_buf()))
    }

    /// What it has saved and what it takes.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.0.with(py, |guard| Ok(guard.stats()))?;
        let dict = PyDict::new(py);
        dict.set_item("asked", stats.asked)?;
        dict.set_item("absent", stats.absent)?;
        dict.set_item("rows", stats.rows)?;
        dict.set_item("keys", stats.keys)?;
        dict.set_item("filters", stats.filters)?;
        dict.set_item("filter_bytes", stats.filter_bytes)?;
        dict.set_item("memtable_bytes", stats.memtable_bytes)?;
        dict.set_item("disk_bytes", stats.disk_bytes)?;
        dict.set_item("unknown_removals", stats.unknown_removals)?;
        dict.set_item("expected_fpp", stats.expected_fpr)?;
        Ok(dict)
    }

    /// Closes the guard, and makes what was noted survive a power failure. What is done with it from then on
    /// raises ClosedError; what other threads do with it now ends first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.opener.check()?;
        or_raise(py.detach(|| {
            let guard = self.0.guard.write().unwrap_or_else(PoisonError::into_inner).take();
            match guard.map(|guard| guard.sync()) {
                // Whoever only reads has nothing to make durable.
                None | Some(Err(sidebloom::Error::ReadOnly)) => Ok(()),
                Some(synced) => synced,
            }
        }))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

/// A change of a key.
type Change = (Vec<u8>, Kind);

#[derive(Clone, Copy)]
enum Kind {
    Insert,
    InsertNew,
    Remove,
}

/// Changes of a guard that go with a transaction of its database; see `Guard.transaction`.
#[pyclass(module = "sidebloom", frozen)]
pub struct GuardTransaction {
    guard: Arc<Shared>,
    commit: Py<PyAny>,
    changes: Mutex<Option<Vec<Change>>>,
}

impl GuardTransaction {
    fn push(&self, key: &Bound<'_, PyAny>, kind: Kind) -> PyResult<()> {
        let owned = AnyKey::of(key)?;
        let bytes = owned.as_bytes(key.py())?.to_vec();
        let push = |changes: &mut Vec<Change>| changes.push((bytes, kind));
        // No exception is made under the lock: that could run code that needs it.
        let pushed = self.changes.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(push);
        pushed.ok_or_else(|| closed("transaction"))
    }

    fn take(&self) -> Option<Vec<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An error of the guard, or what the database's commit raised.
enum Failure {
    Guard(sidebloom::Error),
    Database(PyErr),
}

impl From<sidebloom::Error> for Failure {
    fn from(error: sidebloom::Error) -> Self {
        Failure::Guard(error)
    }
}

#[pymethods]
impl GuardTransaction {
    /// Notes a row with this key.
    fn insert(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(key, Kind::Insert)
    }

    /// Notes a key unless it is known: for a database that has each key once.
    fn insert_new(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(key, Kind::InsertNew)
    }

    /// Forgets a row with this key.
    fn remove(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.push(key, Kind::Remove)
    }

    /// Notes the insertions, calls the database's commit, notes the removals, and returns what the commit
    /// returned. If the commit raises, the insertions stay, which is harmless.
    fn commit(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.guard.opener.check()?;
        let changes = self.take().ok_or_else(|| closed("transaction"))?;
        let done = py.detach(|| {
            self.guard.with_detached(|guard| -> Result<Py<PyAny>, Failure> {
                let mut transaction = guard.transaction();
                for (key, kind) in &changes {
                    match kind {
                        Kind::Insert => transaction.insert(key)?,
                        Kind::InsertNew => transaction.insert_new(key)?,
                        Kind::Remove => transaction.remove(key)?,
                    };
                }
                transaction.commit(|| Python::attach(|py| self.commit.call0(py)).map_err(Failure::Database))
            })
        });
        done.ok_or_else(|| closed("guard"))?.map_err(|failure| match failure {
            Failure::Guard(error) => exception(error),
            Failure::Database(raised) => raised,
        })
    }

    /// For the garbage collector: the commit may refer to this transaction.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.commit)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (kind, *_rest))]
    fn __exit__(&self, py: Python<'_>, kind: &Bound<'_, PyAny>, _rest: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_open = self.changes.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if kind.is_none() && is_open {
            return self.commit(py).map(drop);
        }
        self.take();
        Ok(())
    }
}
