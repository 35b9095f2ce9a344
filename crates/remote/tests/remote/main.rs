//! Publishing and reading through a directory and through memory, with every request counted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

#[path = "../../../../fixtures/archive.rs"]
mod archive;
#[path = "../support/mod.rs"]
mod support;

mod backups;
mod cache;
mod clones;
mod damage;
mod generations;
mod limits;
mod lookups;
mod releases;
mod superseded;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use sidebloom::{Db, Options};
use sidebloom_remote::Remote;
use std::collections::BTreeMap;
use std::sync::Arc;
use support::counting::Counting;
use support::forged::forged;

/// A bucket and directories for stores.
struct Bench {
    dir: tempfile::TempDir,
    store: Counting,
}

impl Bench {
    /// In memory.
    fn new() -> Self {
        Bench { dir: tempfile::tempdir().unwrap(), store: Counting::new(Arc::new(InMemory::new())) }
    }

    /// In a directory.
    fn on_disk() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bucket")).unwrap();
        let local = LocalFileSystem::new_with_prefix(dir.path().join("bucket")).unwrap();
        Bench { dir, store: Counting::new(Arc::new(local)) }
    }

    fn remote(&self) -> Remote {
        Remote::new(Arc::new(self.store.clone()), Path::from("songs")).unwrap()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn open(&self, name: &str) -> Db {
        small().open(self.path(name)).unwrap()
    }

    /// The names of all objects.
    fn objects(&self) -> Vec<String> {
        use futures_util::TryStreamExt;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found: Vec<_> = runtime.block_on(self.store.inner.list(None).try_collect()).unwrap();
        found.into_iter().map(|meta| meta.location.to_string()).collect()
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        let mut found = Vec::new();
        support::counting::damage(&*self.store.inner, &Path::from(name), |bytes| found = bytes.clone());
        found
    }

    /// Writes an object without counting it.
    fn put(&self, name: &str, bytes: Vec<u8>) {
        use object_store::ObjectStoreExt;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.store.inner.put(&Path::from(name), bytes.into())).unwrap();
    }

    fn remove(&self, name: &str) {
        use object_store::ObjectStoreExt;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.store.inner.delete(&Path::from(name))).unwrap();
    }

    fn object(&self, folder: &str) -> Path {
        let name = self.objects().into_iter().find(|name| name.contains(folder)).unwrap();
        Path::from(name)
    }
}

/// Stores with several segments from few rows.
fn small() -> Options {
    Options::new().memtable_bytes(64 << 10).segment_bytes(64 << 10)
}

/// The files in the only directory there.
fn files_of(cache: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = |dir: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let dirs: Vec<_> = entries(cache).into_iter().filter(|path| path.is_dir()).collect();
    assert_eq!(dirs.len(), 1, "one directory for the URL: {dirs:?}");
    entries(&dirs[0])
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

fn fill(db: &Db, rows: std::ops::Range<u32>, value: &str) {
    for i in rows {
        db.put(format!("key{i:08}"), format!("{value} {i}")).unwrap();
    }
}
