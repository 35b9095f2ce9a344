//! The store that the workloads run on.

use super::args::{Args, FilterUse};
use crate::context::{Context, Failure};
use crate::system::PageCache;
use crate::workdir::WorkDir;
use sidebloom::{Db, FilterPolicy, Options};
use std::fs;

/// A directory, and the store in it while it is open.
pub struct Store<'a> {
    cx: &'a Context,
    args: &'a Args,
    // Declared before the directory, so dropped (closed) before the directory is removed.
    db: Option<Db>,
    dir: WorkDir,
}

impl<'a> Store<'a> {
    /// The directory that the arguments ask for: a temporary one, a new one at `--db`, or an existing store.
    pub fn new(cx: &'a Context, args: &'a Args) -> Result<Self, Failure> {
        let dir = match (args.use_existing, cx.db_named) {
            (true, _) => WorkDir::existing(cx.local_db()?),
            (false, true) => WorkDir::kept(cx.local_db()?)?,
            (false, false) => WorkDir::temporary("bench")?,
        };
        Ok(Store { cx, args, db: None, dir })
    }

    /// Its directory.
    pub fn path(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// The store, opened if necessary.
    pub fn db(&mut self) -> Result<Db, Failure> {
        if let Some(db) = &self.db {
            return Ok(db.clone());
        }
        let args = self.args;
        let policy = match (args.filters, args.bits_per_key) {
            (FilterUse::Off, _) => FilterPolicy::OFF,
            (FilterUse::On, Some(bits)) => FilterPolicy::bits_per_key(bits),
            (FilterUse::On, None) => FilterPolicy::default(),
        };
        let options = Options::new()
            .block_cache_bytes(args.cache_bytes)
            .compression(args.compression)
            .filter_policy(policy)
            .create_if_missing(!args.use_existing);
        let db = self.cx.opening(|| options.clone().open(self.dir.path()))?;
        self.db = Some(db.clone());
        Ok(db)
    }

    /// Starts over with an empty store. Call it only in a directory that this benchmark created.
    pub fn clear(&mut self) -> Result<(), Failure> {
        self.db = None;
        let path = self.dir.path();
        fs::remove_dir_all(path)
            .and_then(|()| fs::create_dir(path))
            .map_err(|e| Failure::file("empty", path, e))
    }

    /// Reopens the store with its filters in memory, but an empty block cache and page cache.
    pub fn make_cold(&mut self) -> Result<PageCache, Failure> {
        self.db = None;
        self.db()?.warm()?;
        Ok(PageCache::drop_for(self.dir.path()))
    }
}
