//! A published store and a published guard as changeable objects, and an object store whose objects are
//! exchanged at once.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sidebloom::Options;
use sidebloom::guard::GuardOptions;
use sidebloom::internal::fuzz::crc32;
use sidebloom_remote::guard::GuardPublisher;
use sidebloom_remote::{Publisher, Remote, TakeOver};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};

/// The prefix of all objects.
pub const PREFIX: &str = "p";
/// Rows of the store, and keys of the guard.
pub const ROWS: usize = 12;
/// The contents of an endless answer.
const ENDLESS_BYTES: usize = 1 << 20;
const PIECE: usize = 64 << 10;

/// A key.
pub fn key(n: usize) -> String {
    format!("key {n:03}")
}

/// Its value.
pub fn value(n: usize) -> String {
    format!("value {n} ").repeat(20)
}

/// The objects of a bucket by name, and the lengths claimed for some of them, whose answers never end.
#[derive(Clone, Default)]
pub struct Objects {
    bytes: BTreeMap<String, Vec<u8>>,
    endless: BTreeMap<String, u64>,
}

static PUBLISHED: LazyLock<Objects> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("sidebloom-fuzz-template-{}", std::process::id()));
    _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).unwrap();
    let store = Arc::new(InMemory::new());
    let remote = || Remote::new(store.clone(), Path::from(PREFIX)).unwrap();
    let db = Options::new().block_bytes(256).open(dir.join("store")).unwrap();
    let mut publisher = Publisher::new(&db, remote(), TakeOver::No).unwrap();
    for part in 0..2 {
        (0..ROWS).filter(|n| n % 2 == part).for_each(|n| db.put(key(n), value(n)).unwrap());
        db.flush().unwrap();
        publisher.publish().unwrap();
    }
    let guard = GuardOptions::new().build(dir.join("guard"), (0..ROWS).map(key)).unwrap();
    let mut publisher = GuardPublisher::new(&guard, remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    guard.insert("another key").unwrap();
    publisher.publish().unwrap();
    let objects: Vec<_> =
        store.list(None).map_ok(|meta| meta.location).try_collect().now_or_never().unwrap().unwrap();
    let bytes = |name: &Path| {
        let found = store.get(name).now_or_never().unwrap().unwrap();
        found.bytes().now_or_never().unwrap().unwrap().to_vec()
    };
    let bytes = objects.iter().map(|name| (name.to_string(), bytes(name))).collect();
    drop((db, guard));
    _ = std::fs::remove_dir_all(&dir);
    Objects { bytes, endless: BTreeMap::new() }
});

/// A file of a generation; the manifest comes after the last.
pub fn file_of(body: &mut Value, file: usize) -> &mut Value {
    let count = body["files"].as_array().map_or(0, Vec::len);
    match file % (count + 1) {
        at if at < count => &mut body["files"][at],
        _ => &mut body["manifest"],
    }
}

fn is_generation(name: &str) -> bool {
    name.contains("/gen/")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The body of a generation with its first line.
fn with_head(body: &[u8]) -> Vec<u8> {
    [format!("sidebloom generation 2 {} {:08x}\n", body.len(), crc32(&[body])).into_bytes(), body.to_vec()]
        .concat()
}

fn body_of(bytes: &[u8]) -> &[u8] {
    bytes.iter().position(|byte| *byte == b'\n').map_or(&[], |at| &bytes[at + 1..])
}

impl Objects {
    /// Two generations of a store, and two of a guard.
    pub fn published() -> Self {
        PUBLISHED.clone()
    }

    fn name(&self, which: u8) -> Option<String> {
        self.bytes.keys().nth(usize::from(which) % self.bytes.len().max(1)).cloned()
    }

    fn generation(&self, which: u8) -> Option<String> {
        let names: Vec<_> = self.bytes.keys().filter(|name| is_generation(name)).collect();
        names.get(usize::from(which) % names.len().max(1)).map(|name| (*name).clone())
    }

    /// Changes an object; `change` says whether to repair its checksum.
    pub fn change(&mut self, which: u8, change: impl FnOnce(&mut Vec<u8>) -> bool) {
        let Some(name) = self.name(which) else { return };
        let Some(bytes) = self.bytes.get_mut(&name) else { return };
        if change(bytes) && is_generation(&name) {
            *bytes = with_head(body_of(bytes));
        }
    }

    pub fn remove(&mut self, which: u8) {
        self.name(which).and_then(|name| self.bytes.remove(&name));
    }

    pub fn copy(&mut self, from: u8, to: u8) {
        let (Some(from), Some(to)) = (self.name(from), self.name(to)) else { return };
        let bytes = self.bytes[&from].clone();
        self.bytes.insert(to, bytes);
    }

    pub fn renumber(&mut self, which: u8, number: u64) {
        let Some(name) = self.name(which) else { return };
        let Some((folder, _)) = name.rsplit_once('/') else { return };
        let mut bytes = self.bytes[&name].clone();
        if is_generation(&name) {
            let Ok(mut body) = serde_json::from_slice::<Value>(body_of(&bytes)) else { return };
            let Some(found) = body.get_mut("number") else { return };
            *found = number.into();
            bytes = with_head(&serde_json::to_vec(&body).unwrap());
        }
        self.bytes.insert(format!("{folder}/{number:020}"), bytes);
    }

    /// Changes the body of a generation.
    pub fn edit(&mut self, which: u8, file: u8, change: impl FnOnce(&mut Value, usize)) {
        let Some(name) = self.generation(which) else { return };
        let Ok(mut body) = serde_json::from_slice::<Value>(body_of(&self.bytes[&name])) else { return };
        if body["files"].as_array().is_none_or(Vec::is_empty) {
            return;
        }
        change(&mut body, file.into());
        self.bytes.insert(name, with_head(&serde_json::to_vec(&body).unwrap()));
    }

    /// Changes what a generation names, and its hashes and length in the generation.
    pub fn replace_contents(&mut self, which: u8, file: u8, before_end: usize, change: &[u8]) {
        let mut changed = None;
        let objects = self.bytes.clone();
        let Some(name) = self.generation(which) else { return };
        let Some((folder, _)) = name.split_once("/gen/") else { return };
        self.edit(which, file, |body, file| {
            let file = file_of(body, file);
            let Some(name) = file["object"].as_str().map(|name| format!("{folder}/{name}")) else { return };
            let Some(mut bytes) = objects.get(&name).cloned() else { return };
            let at = bytes.len().saturating_sub(1 + before_end);
            bytes.iter_mut().skip(at).zip(change).for_each(|(byte, change)| *byte ^= change);
            file["sha256"] = sha256(&bytes).into();
            if let Some(tail) =
                file["tail"]["at"].as_u64().and_then(|at| bytes.get(usize::try_from(at).ok()?..))
            {
                file["tail"]["sha256"] = sha256(tail).into();
            }
            changed = Some((name, bytes));
        });
        self.bytes.extend(changed);
    }

    pub fn hint(&mut self, of_guard: bool, bytes: Vec<u8>) {
        let name = if of_guard { "guard/latest" } else { "latest" };
        self.bytes.insert(format!("{PREFIX}/{name}"), bytes);
    }

    pub fn endless(&mut self, which: u8, said: u64) {
        self.endless.extend(self.name(which).map(|name| (name, said)));
    }
}

/// An object store with the objects of the last [`set`](Self::set).
#[derive(Debug, Default)]
pub struct Swapped(Mutex<Current>);

#[derive(Debug, Default)]
struct Current {
    store: Arc<InMemory>,
    endless: BTreeMap<String, u64>,
}

impl Swapped {
    pub fn set(&self, objects: &Objects) {
        let store = InMemory::new();
        for (name, bytes) in &objects.bytes {
            let name = Path::from(name.as_str());
            store.put(&name, bytes.clone().into()).now_or_never().unwrap().unwrap();
        }
        *self.0.lock().unwrap() = Current { store: Arc::new(store), endless: objects.endless.clone() };
    }

    fn store(&self) -> Arc<InMemory> {
        self.0.lock().unwrap().store.clone()
    }
}

impl fmt::Display for Swapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("swapped")
    }
}

#[async_trait]
impl ObjectStore for Swapped {
    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(Error::NotImplemented { operation: "put".into(), implementer: "swapped".into() })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(Error::NotImplemented { operation: "put".into(), implementer: "swapped".into() })
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let said = self.0.lock().unwrap().endless.get(location.as_ref()).copied();
        let mut found = self.store().get_opts(location, options).await?;
        if let Some(said) = said {
            found.meta.size = said;
            found.range = 0..said;
            let piece = Bytes::from_static(&[b'1'; PIECE]);
            let pieces = stream::repeat_with(move || Ok(piece.clone())).take(ENDLESS_BYTES / PIECE);
            found.payload = GetResultPayload::Stream(pieces.boxed());
        }
        Ok(found)
    }

    fn delete_stream(&self, names: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.store().delete_stream(names)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store().list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store().list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store().copy_opts(from, to, options).await
    }
}
