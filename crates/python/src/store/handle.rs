//! The open store that a `Store`, its keyspaces, snapshots and walks share.

use crate::error::{closed, or_raise};
use crate::fork::Opener;
use pyo3::prelude::*;
use sidebloom::{Db, Error, Keyspace};
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// An open store, or one that was closed.
pub struct Handle {
    open: RwLock<Option<Open>>,
    opener: Opener,
    pub path: PathBuf,
    /// Whether keys and values are `str`.
    pub is_text: bool,
}

/// The handles of an open store. All of them are dropped when it is closed, so that nobody keeps it locked.
pub struct Open {
    pub db: Db,
    /// The default one, and those that were opened.
    keyspaces: Vec<Keyspace>,
}

/// Which keyspace of a [`Handle`].
#[derive(Clone, Copy, PartialEq)]
pub struct KeyspaceIndex(usize);

impl KeyspaceIndex {
    pub const DEFAULT: KeyspaceIndex = KeyspaceIndex(0);
}

impl Open {
    pub fn keyspace(&self, index: KeyspaceIndex) -> &Keyspace {
        self.keyspaces.get(index.0).unwrap_or(&self.db)
    }
}

impl Handle {
    pub fn new(db: Db, path: PathBuf, is_text: bool) -> Self {
        let keyspaces = vec![(*db).clone()];
        let open = RwLock::new(Some(Open { db, keyspaces }));
        Handle { open, opener: Opener::this_process(), path, is_text }
    }

    /// # Errors
    /// `ForkedError` in a forked process.
    pub fn check_process(&self) -> PyResult<()> {
        self.opener.check()
    }

    /// Runs `work` without the GIL.
    ///
    /// # Errors
    /// `ForkedError`; `ClosedError`; the errors of `work`.
    pub fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Open) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        self.check_process()?;
        let done = py.detach(|| self.read().as_ref().map(work));
        or_raise(done.ok_or_else(|| closed("store"))?)
    }

    /// [`with`](Self::with) for a keyspace.
    pub fn with_keyspace<T: Send>(
        &self,
        py: Python<'_>,
        index: KeyspaceIndex,
        work: impl FnOnce(&Keyspace) -> sidebloom::Result<T> + Send,
    ) -> PyResult<T> {
        self.with(py, |open| work(open.keyspace(index)))
    }

    /// [`with_keyspace`](Self::with_keyspace), for who does not hold the GIL.
    ///
    /// # Errors
    /// [`Error::Closing`] if the store is closed; the errors of `work`.
    pub fn with_open_keyspace<T>(
        &self,
        index: KeyspaceIndex,
        work: impl FnOnce(&Keyspace) -> sidebloom::Result<T>,
    ) -> sidebloom::Result<T> {
        self.read().as_ref().map_or(Err(Error::Closing), |open| work(open.keyspace(index)))
    }

    /// Keeps a keyspace for as long as the store is open.
    pub fn add(
        &self,
        py: Python<'_>,
        find: impl FnOnce(&Db) -> sidebloom::Result<Keyspace> + Send,
    ) -> PyResult<KeyspaceIndex> {
        let keyspace = self.with(py, |open| find(&open.db))?;
        // No exception is made under the lock: that could run code that needs it.
        let index = py.detach(|| {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            let keyspaces = open.as_mut().map(|open| &mut open.keyspaces)?;
            keyspaces.push(keyspace);
            Some(KeyspaceIndex(keyspaces.len() - 1))
        });
        index.ok_or_else(|| closed("store"))
    }

    /// Waits for what runs, and closes the store. Does nothing if it is closed.
    ///
    /// # Errors
    /// The errors of [`Db::close`].
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process()?;
        let closed = py.detach(|| {
            let open = self.open.write().unwrap_or_else(PoisonError::into_inner).take();
            open.map_or(Ok(()), |Open { db, keyspaces }| {
                drop(keyspaces);
                db.close()
            })
        });
        or_raise(closed)
    }

    /// # Errors
    /// `ForkedError`.
    pub fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.check_process()?;
        Ok(py.detach(|| self.read().is_none()))
    }

    /// Whether this process has opened it. In a forked one, nobody unlocks what others had locked.
    pub fn is_own(&self) -> bool {
        self.opener.is_current()
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Open>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Closing may wait for a merge, and others should not wait for it with the GIL.
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(open) = open {
            Python::try_attach(|py| py.detach(|| drop(open)));
        }
    }
}
