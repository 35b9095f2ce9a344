//! [`Db`], the handle to an open store.

use super::keyspace::Keyspace;
use super::stats::Stats;
use crate::engine::open::close::OpenStore;
use crate::error::Result;
use crate::options::{KeyspaceOptions, OptionChanges};
use std::ops::Deref;
use std::sync::Arc;

/// An open store. Clones are handles to the same store, for sharing between threads. Dropping the last one
/// closes the store; if level 0 has 20 segments or more, that waits for their merge.
///
/// One process at a time can open a store for writing. Reads never wait for writes, flushes or compactions.
///
/// # Forks
/// A forked process has a copy of the handle, but none of the store's threads, and shares its locks. There:
/// - [`get`](Keyspace::get), [`range`](Keyspace::range) and the other reads see the store as it was at the
///   fork. They use no cache. If the parent has removed a file since, they fail with
///   [`Error::Io`](crate::Error::Io).
/// - Everything else returns [`Error::Forked`](crate::Error::Forked) and changes nothing.
/// - Dropping handles, snapshots and iterators waits for nothing, and unlocks or removes nothing. The child
///   can open the store once it has dropped all its handles and the parent has closed it or exited.
///
/// A child that keeps a handle keeps the lock if its parent is killed. The child of `vfork` shares the
/// parent's memory, so it must not use the store at all.
///
/// # Keyspaces
/// A store has a default keyspace, and any number of [others](Keyspace) by name. `Db` dereferences to the
/// default one, which has the methods for reading and writing.
#[derive(Clone)]
pub struct Db {
    default: Keyspace,
}

impl Deref for Db {
    type Target = Keyspace;
    #[inline]
    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl Db {
    pub(crate) fn new(store: OpenStore) -> Self {
        Db { default: Keyspace::default_of(Arc::new(store)) }
    }

    /// Closes the store if this is its last handle (those of keyspaces count), like a drop, and reports
    /// whether everything is durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned) if an earlier write or a background thread has failed; the
    /// errors of [`flush`](Keyspace::flush). [`Error::Forked`](crate::Error::Forked) in a forked process,
    /// where it closes only that process's copy.
    pub fn close(self) -> Result<()> {
        let is_own = self.own().map(drop);
        Arc::into_inner(self.default.store).map_or(is_own, |mut store| store.close())
    }

    /// The keyspace of this name.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`](crate::Error::UnknownKeyspace) if there is none; the errors of
    /// [`get`](Keyspace::get).
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        Ok(self.other(self.engine().open_keyspace(name)?))
    }

    /// Creates a keyspace. Its name has 1 to 255 bytes.
    ///
    /// # Errors
    /// [`Error::KeyspaceExists`](crate::Error::KeyspaceExists),
    /// [`Error::InvalidKeyspaceName`](crate::Error::InvalidKeyspaceName);
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for options out of range; the errors of
    /// [`put`](Keyspace::put).
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        Ok(self.other(self.own()?.create_keyspace(name, options)?))
    }

    /// The names of all keyspaces except the default one, in order.
    ///
    /// # Errors
    /// The errors of [`get`](Keyspace::get).
    pub fn keyspaces(&self) -> Result<Vec<String>> {
        self.engine().keyspace_names()
    }

    /// Drops a keyspace with all its rows, durably. Its segments are removed unread, once no snapshot or
    /// iterator reads them; rows in segments that it shares with others are removed by later compactions.
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`](crate::Error::UnknownKeyspace) if there is none; the errors of
    /// [`sync`](Keyspace::sync).
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.own()?.drop_keyspace(name)
    }

    /// Changes options of the open store: all of them, or none if one is refused. They are not stored, so the
    /// next open uses its own options. [`OptionChanges`] says when each takes effect, and
    /// [`stats`](Self::stats) shows what is in force. Calls from several threads take effect one after the
    /// other. Waits for no reader, writer, flush or compaction; a cache that shrinks by gigabytes takes some
    /// seconds. Keyspaces keep [options of their own](Keyspace::set_options), and follow the store in others.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// use sidebloom::{Db, OptionChanges};
    ///
    /// let db = Db::open(dir.path())?;
    /// // During a load: leave the disk to the service.
    /// db.set_options(OptionChanges::new().compaction_bytes_per_second(20 << 20))?;
    /// assert_eq!(db.stats().compaction_bytes_per_second, 20 << 20);
    /// # Ok::<(), sidebloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a value that opening would refuse, and
    /// for a policy that turns filters on or off. [`Error::ReadOnly`](crate::Error::ReadOnly) in a store that
    /// is open read-only or follows another process, where only the cache can be changed;
    /// [`Error::Poisoned`](crate::Error::Poisoned) likewise. [`Error::Io`](crate::Error::Io) if a thread
    /// cannot be started. [`Error::Forked`](crate::Error::Forked) in a forked process.
    pub fn set_options(&self, changes: OptionChanges) -> Result<()> {
        self.default.store.set_options(&changes)
    }

    /// Counters since the store was opened, and the current state of its levels.
    pub fn stats(&self) -> Stats {
        Stats::of(self.engine())
    }
}
