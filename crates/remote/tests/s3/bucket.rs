//! A bucket that is accessed through a proxy, and local stores.

use crate::moto::{client, moto};
use crate::proxy::Proxy;
use object_store::path::Path;
use sidebloom::{Db, FilterPolicy, Options};
use sidebloom_remote::{Publisher, Reader, ReaderOptions, Remote, Result, TakeOver};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// The prefix of stores in their buckets.
const PREFIX: &str = "songs";

pub struct Bucket {
    pub proxy: Proxy,
    name: &'static str,
    dir: TempDir,
}

impl Bucket {
    /// A new bucket; `None` without a server.
    pub fn new(name: &'static str) -> Option<Bucket> {
        moto()?.create_bucket(name);
        Self::missing(name)
    }

    /// The name of a missing bucket; `None` without a server.
    pub fn missing(name: &'static str) -> Option<Bucket> {
        let proxy = Proxy::start(moto()?.address, name, PREFIX);
        Some(Bucket { proxy, name, dir: tempfile::tempdir().unwrap() })
    }

    /// The place, through the proxy.
    pub fn remote(&self) -> Remote {
        self.remote_at(self.proxy.address)
    }

    /// The place as seen through another address.
    pub fn remote_at(&self, address: SocketAddr) -> Remote {
        Remote::new(Arc::new(client(address, self.name)), Path::from(PREFIX)).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A store of several segments from few rows. Its filters are the same on each level, so none is rebuilt
    /// and uploaded again because the sizes of the levels have changed.
    pub fn open(&self, name: &str) -> Db {
        let options = Options::new().filter_policy(FilterPolicy::blocked_bloom(12.0));
        options.memtable_bytes(64 << 10).segment_bytes(64 << 10).open(self.path(name)).unwrap()
    }

    pub fn publisher(&self, db: &Db) -> Result<Publisher> {
        Publisher::new(db, self.remote(), TakeOver::No)
    }

    /// A reader without a cache, so that every block that it reads is a request.
    pub fn read(&self) -> Result<Reader> {
        let options = ReaderOptions::new().store(Options::new().block_cache_bytes(0));
        options.open(self.remote(), self.path("cache"))
    }

    /// The rows that a reader sees without any kept files.
    pub fn published(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        contents(Reader::open(self.remote(), dir.path()).unwrap().db())
    }
}

pub fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

pub fn fill(db: &Db, rows: std::ops::Range<u32>, value: &str) {
    for i in rows {
        db.put(format!("key{i:08}"), format!("{value} {i}")).unwrap();
    }
}
