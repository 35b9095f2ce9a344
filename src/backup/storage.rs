//! Where a repository is: a directory, or a place in an object store.

use super::format::Sha256;
use crate::error::Result;
use crate::fs::ReadFile;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The folder of the files that backups list.
pub use super::names::FILES;

/// A place for a repository, with the few operations that one needs. Names are relative, with `/` between a
/// folder and a name in it.
///
/// Whatever goes wrong between any two operations, here or in another process, must not cost a backup that is
/// listed a file that it needs. A directory sees to that by locks; an object store, which has none, by
/// [`Hold::confirm`] and [`Listed::age`].
pub trait Storage: Send + Sync + Debug {
    /// The directory or the URL, for messages.
    fn place(&self) -> &Path;

    /// The directory, if it is one: a store must not be in it, nor the other way round.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// The names in a folder, in any order; none if the folder is missing.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn list(&self, folder: &str) -> Result<Vec<Listed>>;

    /// Opens a file; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn open(&self, name: &str) -> Result<Option<Arc<dyn ReadFile>>>;

    /// Writes a file into the folder [`FILES`], named by the SHA-256 of its contents, in hex. Replaces an
    /// existing one, which may be damaged. Nobody sees a part of it under that name.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io), and the errors of `contents`.
    fn put(&self, contents: &dyn Contents) -> Result<Sha256>;

    /// Makes everything durable that was [`put`](Self::put) or [removed](Self::remove).
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn sync(&self) -> Result<()>;

    /// Creates a small file with these bytes, durably, and whole or not at all. Returns `false` if it exists.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io). Then the file may exist or not.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool>;

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io).
    fn remove(&self, name: &str) -> Result<()>;

    /// Excludes what does not go together with this purpose, as far as the place has locks. To
    /// [add](Purpose::Add), also creates what is missing of the place.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked), [`Error::Io`](crate::Error::Io);
    /// [`Error::NotARepository`](crate::Error::NotARepository) if there are other files.
    fn lock(&self, purpose: Purpose) -> Result<Box<dyn Hold>>;
}

/// What a repository is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Adding a backup. Excludes other additions and removals, in an object store only removals.
    Add,
    /// Removing backups. Excludes everything else.
    Remove,
    /// Reading files, beside additions.
    Read,
}

/// A lock of a repository, until it is dropped.
pub trait Hold: Send + Debug {
    /// Checks that nothing was removed since the lock was taken. Where a lock alone does not exclude that, it
    /// is asked again once a backup is complete, and the backup is withdrawn if the answer is an error.
    ///
    /// # Errors
    /// [`Error::Locked`](crate::Error::Locked), [`Error::LockLost`](crate::Error::LockLost) and
    /// [`Error::Io`](crate::Error::Io).
    fn confirm(&self) -> Result<()>;

    /// Whether nobody else can add or remove anything. If not, a backup that is complete looks once more
    /// whether all of its files are there.
    fn is_exclusive(&self) -> bool;
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name, without the folder.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// How long ago it was written, by the clock of the place; the longest time where a lock tells that
    /// nobody is about to use the file. A removal leaves files that no backup lists while they are young.
    pub age: Duration,
}

/// The contents of a file that is to be written.
pub trait Contents {
    /// Passes the contents in pieces to `each`, from the start. May be called again, with the same result.
    ///
    /// # Errors
    /// Those of reading, of checks, and of `each`.
    fn read(&self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
}
