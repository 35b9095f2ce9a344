//! `Store`: an open store.

use super::expiry::duration;
use super::handle::{Handle, KeyspaceIndex};
use super::keyspace::Keyspace;
use super::options::{compression, durability, filter_policy};
use super::stats;
use crate::error::{invalid, or_raise};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use sidebloom::{KeyspaceOptions, Options};
use std::path::PathBuf;
use std::sync::Arc;

/// An embedded key-value store: a mutable mapping, on disk, whose lookups for missing keys rarely read it.
///
/// One process at a time writes a store, with as many threads as it likes; others follow it (`follow=True`).
/// After a fork, the store belongs to the parent: the child gets ForkedError, and opens it for itself.
///
/// path: its directory, which is created if missing.
/// text: keys and values are str (stored as UTF-8), not bytes.
/// read_only: change nothing; many processes can do this at once, while nobody writes.
/// follow: read what another process writes, as it writes.
/// create: create a missing store; otherwise that is an error.
/// durability: "os" (a write survives the death of the process) or "sync" (it survives a power failure).
/// bits_per_key: of the filters; 0 turns them off.
/// compression: "auto", "none", "lz4" or "fsst".
/// block_cache_bytes, memtable_bytes, segment_bytes, max_open_files, background_threads, transaction_bytes
/// and mode are those of the library.
#[pyclass(module = "sidebloom", frozen, extends = Keyspace)]
pub struct Store;

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (
        path, *, text = false, read_only = false, follow = false, create = true, durability = "os",
        bits_per_key = None, compression = "auto", block_cache_bytes = None, memtable_bytes = None,
        segment_bytes = None, max_open_files = None, background_threads = None, transaction_bytes = None,
        mode = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "one for each option, by name")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        text: bool,
        read_only: bool,
        follow: bool,
        create: bool,
        durability: &str,
        bits_per_key: Option<f64>,
        compression: &str,
        block_cache_bytes: Option<u64>,
        memtable_bytes: Option<u64>,
        segment_bytes: Option<u64>,
        max_open_files: Option<usize>,
        background_threads: Option<usize>,
        transaction_bytes: Option<u64>,
        mode: Option<u32>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if read_only && follow {
            return Err(invalid("read_only and follow exclude each other: a follower is read-only"));
        }
        let mut options = Options::new()
            .read_only(read_only)
            .follow(follow)
            .create_if_missing(create)
            .durability(self::durability(durability)?)
            .compression(self::compression(compression)?);
        if let Some(bits) = bits_per_key {
            options = options.filter_policy(filter_policy(bits));
        }
        if let Some(bytes) = block_cache_bytes {
            options = options.block_cache_bytes(bytes);
        }
        if let Some(bytes) = memtable_bytes {
            options = options.memtable_bytes(bytes);
        }
        if let Some(bytes) = segment_bytes {
            options = options.segment_bytes(bytes);
        }
        if let Some(files) = max_open_files {
            options = options.max_open_files(files);
        }
        if let Some(threads) = background_threads {
            options = options.background_threads(threads);
        }
        if let Some(bytes) = transaction_bytes {
            options = options.transaction_bytes(bytes);
        }
        if let Some(mode) = mode {
            options = options.mode(mode);
        }
        let db = or_raise(py.detach(|| {
            sidebloom::fs::fill_standard_descriptors()?;
            sidebloom::fs::catch_sigbus()?;
            options.open(&path)
        }))?;
        let handle = Arc::new(Handle::new(db, path, text));
        let default = Keyspace { handle, index: KeyspaceIndex::DEFAULT };
        Ok(PyClassInitializer::from(default).add_subclass(Store))
    }

    /// The directory.
    #[getter]
    fn path(slf: PyRef<'_, Self>) -> PathBuf {
        slf.as_super().handle.path.clone()
    }

    /// The keyspace of a name.
    fn keyspace(slf: PyRef<'_, Self>, py: Python<'_>, name: &str) -> PyResult<Keyspace> {
        let handle = &slf.as_super().handle;
        let index = handle.add(py, |db| db.keyspace(name))?;
        Ok(Keyspace { handle: Arc::clone(handle), index })
    }

    /// Creates a keyspace.
    ///
    /// expire_after: seconds, or a timedelta, after which its rows are gone unless a put says otherwise.
    /// window: the same, for keyspaces whose rows all live that long: old ones are removed unread.
    /// bits_per_key: of its filters; by default as the store does it.
    #[pyo3(signature = (name, *, expire_after = None, window = None, bits_per_key = None))]
    fn create_keyspace(
        slf: PyRef<'_, Self>,
        py: Python<'_>,
        name: &str,
        expire_after: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        bits_per_key: Option<f64>,
    ) -> PyResult<Keyspace> {
        let mut options = KeyspaceOptions::new();
        match (expire_after, window) {
            (Some(after), None) => options = options.expire_after(duration(after)?),
            (None, Some(window)) => options = options.window(duration(window)?),
            (None, None) => {}
            (Some(_), Some(_)) => return Err(invalid("expire_after and window exclude each other")),
        }
        if let Some(bits) = bits_per_key {
            options = options.filter_policy(filter_policy(bits));
        }
        let handle = &slf.as_super().handle;
        let index = handle.add(py, |db| db.create_keyspace(name, options))?;
        Ok(Keyspace { handle: Arc::clone(handle), index })
    }

    /// The names of the keyspaces, in order.
    fn keyspaces(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<Vec<String>> {
        slf.as_super().handle.with(py, |open| open.db.keyspaces())
    }

    /// Drops a keyspace with all its rows.
    fn drop_keyspace(slf: PyRef<'_, Self>, py: Python<'_>, name: &str) -> PyResult<()> {
        slf.as_super().handle.with(py, |open| open.db.drop_keyspace(name))
    }

    /// Makes what was written so far survive a power failure.
    fn sync(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        slf.as_super().handle.with(py, |open| open.db.sync())
    }

    /// Writes the rows in memory to segments.
    fn flush(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        slf.as_super().handle.with(py, |open| open.db.flush())
    }

    /// Merges all segments.
    fn compact(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        slf.as_super().handle.with(py, |open| open.db.compact())
    }

    /// Sees what the writing process has written by now; for a store that follows one.
    fn catch_up(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        slf.as_super().handle.with(py, |open| open.db.catch_up())
    }

    /// A copy of the store, as of now, in a new directory; it shares the segments' files if it can.
    fn checkpoint(slf: PyRef<'_, Self>, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        slf.as_super().handle.with(py, |open| open.db.checkpoint(&path))
    }

    /// Compares all files with their checksums, and raises an exception for the first that is damaged.
    /// Returns how many entries they have, deletions and older values included.
    fn verify(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<u64> {
        slf.as_super().handle.with(py, |open| {
            let report = open.db.verify()?;
            match report.problems.into_iter().next() {
                Some(problem) => Err(problem),
                None => Ok(report.entries + report.log_entries),
            }
        })
    }

    /// Counters since the store was opened, and what its levels have.
    fn stats<'py>(slf: PyRef<'_, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = slf.as_super().handle.with(py, |open| Ok(open.db.stats()))?;
        stats::of_store(py, &stats)
    }

    /// Whether it was closed.
    #[getter]
    fn closed(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<bool> {
        slf.as_super().handle.is_closed(py)
    }

    /// Closes the store, once what other threads do with it is done. What its keyspaces and it do from then
    /// on raises ClosedError; snapshots and walks go on, as their documentation says.
    fn close(slf: PyRef<'_, Self>, py: Python<'_>) -> PyResult<()> {
        slf.as_super().handle.close(py)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: PyRef<'_, Self>, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        Self::close(slf, py)
    }

    fn __repr__(slf: PyRef<'_, Self>) -> String {
        format!("<sidebloom.Store {}>", sidebloom::show::path(&slf.as_super().handle.path))
    }
}
