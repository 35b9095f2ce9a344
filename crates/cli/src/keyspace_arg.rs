//! The option `--keyspace`: which keys of the store a command works on.

use crate::context::{Context, Failure};
use crate::remote;
use sidebloom::{Db, Error, Keyspace};
use std::ffi::{OsStr, OsString};
use std::ops::Deref;

/// The keyspace that a command works on.
#[derive(clap::Args)]
pub struct KeyspaceArg {
    /// Work on the keys of this keyspace, made by `sidebloom keyspaces create` [default: the default
    /// keyspace, which has no name]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<OsString>,
}

/// A keyspace of an open store. It dereferences to the keyspace.
pub struct OpenKeyspace {
    keyspace: Keyspace,
    /// Its store.
    pub db: Db,
}

impl KeyspaceArg {
    /// Whether a keyspace was named.
    pub fn is_given(&self) -> bool {
        self.keyspace.is_some()
    }

    /// Opens the store for reading, as [`remote::open_to_read`] does, and the keyspace.
    pub fn open_to_read(&self, cx: &Context) -> Result<OpenKeyspace, Failure> {
        self.of(|| remote::open_to_read(cx))
    }

    /// Opens the store for writing, and the keyspace. With `create`, creates a missing store, unless a
    /// keyspace is named: a new store has none.
    pub fn open_to_write(&self, cx: &Context, create: bool) -> Result<OpenKeyspace, Failure> {
        let opened = self.of(|| cx.open_to_write(create && !self.is_given()));
        opened.map_err(|failure| match failure {
            Failure::Store(error @ (Error::UnknownKeyspace { .. } | Error::NotAStore { .. }))
                if create && self.is_given() =>
            {
                Failure::message(format!("{error} (`sidebloom keyspaces create NAME` creates a keyspace)"))
            }
            failure => failure,
        })
    }

    fn of(&self, open: impl FnOnce() -> Result<Db, Failure>) -> Result<OpenKeyspace, Failure> {
        // A wrong name is refused before the store is opened or created.
        let name = self.keyspace.as_deref().map(utf8).transpose()?;
        let db = open()?;
        let keyspace = name.map_or_else(|| Ok(Keyspace::clone(&db)), |name| db.keyspace(name))?;
        Ok(OpenKeyspace { keyspace, db })
    }
}

impl OpenKeyspace {
    /// Closes the store, and reports whether everything is durable.
    pub fn close(self) -> Result<(), Failure> {
        drop(self.keyspace); // An open keyspace would keep the store open.
        Ok(self.db.close()?)
    }
}

impl Deref for OpenKeyspace {
    type Target = Keyspace;
    fn deref(&self) -> &Keyspace {
        &self.keyspace
    }
}

/// The name of a keyspace given on the command line.
pub fn utf8(name: &OsStr) -> Result<&str, Failure> {
    name.to_str().ok_or_else(|| {
        let name = name.to_string_lossy().into_owned();
        Error::InvalidKeyspaceName { name, why: "it is not UTF-8" }.into()
    })
}
