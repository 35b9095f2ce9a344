//! An object store that counts requests and fails on demand, and guards to publish.

use crate::forged::forged;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use sidebloom::filter::Verdict;
use sidebloom::guard::{Change, Guard, GuardOptions, Source};
use sidebloom::{Durability, FilterPolicy};
use sidebloom_remote::guard::{GuardPublisher, RemoteGuard, RemoteGuardOptions};
use sidebloom_remote::{Remote, TakeOver};
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// What happens to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// None is answered.
    Unreachable,
    /// Writes are refused, after this many.
    WritesAfter(u64),
    /// The next write of a generation succeeds, but its answer is lost.
    LosesAnswer,
    /// After that, none is answered.
    LosesAnswerAndBreaks,
    /// Every generation to be created exists already, but is gone when read.
    ExistsThenGone,
    /// No generation can be written.
    NoNewGeneration,
    /// There is a generation for every number.
    AlwaysNext,
}

#[derive(Debug)]
pub struct Watched {
    pub store: InMemory,
    pub gets: AtomicU64,
    pub puts: AtomicU64,
    pub lists: AtomicU64,
    /// How far the store's clock is ahead, in seconds.
    pub ahead: AtomicI64,
    fault: Mutex<Fault>,
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("watched")
    }
}

fn broken() -> Error {
    Error::Generic { store: "watched", source: "told to fail".into() }
}

impl Watched {
    pub fn new() -> Arc<Self> {
        Arc::new(Watched {
            store: InMemory::new(),
            gets: AtomicU64::new(0),
            puts: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            ahead: AtomicI64::new(0),
            fault: Mutex::new(Fault::None),
        })
    }

    pub fn fail(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub fn place(self: &Arc<Self>) -> Remote {
        Remote::new(Arc::clone(self) as _, Path::from("songs")).unwrap()
    }

    pub fn requests(&self) -> u64 {
        self.gets.load(Relaxed) + self.puts.load(Relaxed) + self.lists.load(Relaxed)
    }

    fn reach(&self) -> Result<()> {
        match *self.fault.lock().unwrap() {
            Fault::Unreachable => Err(broken()),
            _ => Ok(()),
        }
    }

    /// The first generation under the name of another one.
    async fn forge(&self, at: &Path) -> Result<GetResult> {
        let missing = || Error::NotFound { path: at.to_string(), source: "none".into() };
        let (before, number) = at.as_ref().rsplit_once("/gen/").ok_or_else(missing)?;
        let number: u64 = number.parse().unwrap();
        let first = self.store.get(&Path::from(format!("{before}/gen/{:020}", 1))).await?;
        let bytes = forged(&first.bytes().await?, |body| body["number"] = number.into());
        let forged = InMemory::new();
        forged.put(at, bytes.into()).await?;
        forged.get(at).await
    }

    fn shifted(&self, mut meta: ObjectMeta) -> ObjectMeta {
        meta.last_modified += Duration::from_secs(self.ahead.load(Relaxed).max(0).unsigned_abs());
        meta.last_modified -= Duration::from_secs(self.ahead.load(Relaxed).min(0).unsigned_abs());
        meta
    }

    /// The names of all objects, not counted as requests.
    pub fn names(&self) -> Vec<String> {
        block(async { self.store.list(None).map(|meta| meta.unwrap().location.to_string()).collect().await })
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        block(async { self.store.get(&Path::from(name)).await.unwrap().bytes().await.unwrap().to_vec() })
    }

    pub fn replace(&self, name: &str, bytes: Vec<u8>) {
        block(async { self.store.put(&Path::from(name), bytes.into()).await.unwrap() });
    }

    pub fn remove(&self, name: &str) {
        block(async { self.store.delete(&Path::from(name)).await.unwrap() });
    }

    pub fn filters(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.contains("/filter/")).collect()
    }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.puts.fetch_add(1, Relaxed);
        self.reach()?;
        let loses = {
            let mut fault = self.fault.lock().unwrap();
            match &mut *fault {
                Fault::WritesAfter(0) => return Err(broken()),
                Fault::WritesAfter(left) => *left -= 1,
                _ => {}
            }
            let next = match *fault {
                Fault::LosesAnswer => Some(Fault::None),
                Fault::LosesAnswerAndBreaks => Some(Fault::Unreachable),
                _ => None,
            };
            let next = next.filter(|_| at.as_ref().contains("/gen/"));
            next.inspect(|next| *fault = *next).is_some()
        };
        let is_refused =
            *self.fault.lock().unwrap() == Fault::NoNewGeneration && at.as_ref().contains("/gen/");
        if is_refused && self.store.head(at).await.is_err() {
            return Err(broken());
        }
        if *self.fault.lock().unwrap() == Fault::ExistsThenGone && at.as_ref().contains("/gen/") {
            return Err(Error::AlreadyExists { path: at.to_string(), source: "told to".into() });
        }
        let put = self.store.put_opts(at, payload, options).await?;
        if loses { Err(broken()) } else { Ok(put) }
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(broken())
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.gets.fetch_add(1, Relaxed);
        self.reach()?;
        let mut got = match self.store.get_opts(at, options).await {
            Err(Error::NotFound { .. }) if *self.fault.lock().unwrap() == Fault::AlwaysNext => {
                self.forge(at).await?
            }
            got => got?,
        };
        got.meta = self.shifted(got.meta);
        Ok(got)
    }

    fn delete_stream(&self, names: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(names)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.lists.fetch_add(1, Relaxed);
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

/// A guard in a directory of its own.
pub struct Published {
    pub dir: TempDir,
    pub guard: Guard,
    pub keys: Vec<String>,
}

pub fn strings(prefix: &str, count: u32) -> Vec<String> {
    (0..count).map(|n| format!("{prefix} {n}")).collect()
}

/// Filters so fine that a "maybe" for a missing key does not happen by chance: 1 in 65,000.
pub fn options() -> GuardOptions {
    GuardOptions::new().filter_policy(FilterPolicy::bits_per_key(19.0)).durability(Durability::Os)
}

pub fn guard() -> Published {
    let (dir, keys) = (tempfile::tempdir().unwrap(), strings("key", 2000));
    let guard = options().build(dir.path().join("guard"), &keys).unwrap();
    Published { dir, guard, keys }
}

impl Published {
    pub fn publisher(&self, store: &Arc<Watched>) -> GuardPublisher {
        GuardPublisher::new(&self.guard, store.place(), TakeOver::No).unwrap()
    }
}

/// The files in the only directory of a cache.
pub fn files_of(cache: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = |dir: &std::path::Path| -> Vec<_> {
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let dirs: Vec<_> = entries(cache).into_iter().filter(|path| path.is_dir()).collect();
    assert_eq!(dirs.len(), 1, "one directory for the URL: {dirs:?}");
    entries(&dirs[0])
}

/// Without a thread: the tests refresh.
pub fn by_hand() -> RemoteGuardOptions {
    RemoteGuardOptions::new().poll(None)
}

pub fn reader(store: &Arc<Watched>, dir: &TempDir) -> RemoteGuard {
    RemoteGuard::open(store.place(), dir.path().join("cache"), by_hand()).unwrap()
}

pub fn all_maybe<K: AsRef<[u8]>>(remote: &RemoteGuard, keys: &[K]) -> bool {
    keys.iter().all(|key| remote.may_contain(key) == Verdict::Maybe)
        && remote.may_contain_many(keys).iter().all(|verdict| *verdict == Verdict::Maybe)
}

/// How many of these missing keys are denied.
pub fn denied(remote: &RemoteGuard, count: u32) -> usize {
    let absent = strings("absent", count);
    remote.may_contain_many(&absent).iter().filter(|verdict| **verdict == Verdict::Absent).count()
}

/// A database with these keys.
pub struct Rows(pub Vec<String>);

impl Source for Rows {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
        self.0.iter().try_for_each(|key| visit(key.as_bytes()))
    }

    fn count(&mut self, key: &[u8]) -> sidebloom::Result<u64> {
        Ok(self.0.iter().filter(|row| row.as_bytes() == key).count() as u64)
    }

    fn apply(&mut self, _: &[Change<'_>]) -> sidebloom::Result<()> {
        Err(sidebloom::Error::ReadOnly)
    }
}
