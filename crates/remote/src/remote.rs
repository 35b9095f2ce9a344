//! A place in an object store, with blocking calls.

use crate::error::{Error, Result};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode,
    PutOptions, PutPayload,
};
use sidebloom::fs::Process;
use sidebloom::show;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
#[cfg(not(fuzzing))]
use std::sync::mpsc::sync_channel;
#[cfg(not(fuzzing))]
use std::time::Duration;
use tokio::runtime::Runtime;

/// Threads that wait for the network. The calling threads do the work.
const NETWORK_THREADS: usize = 2;
/// Maximum time of one request, including retries; the clients' own limits are lower.
#[cfg(not(fuzzing))]
const LONGEST: Duration = Duration::from_secs(300);
/// Names in one listing. Bounds the memory of a list, however many names a bucket claims.
const LISTED_MAX: usize = 1 << 20;

/// A bucket, and the prefix of one published store's objects. Clones share their connections.
#[derive(Clone)]
pub struct Remote {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The last part of the prefix, if not in the URL.
    folder: &'static str,
    url: Arc<str>,
    runtime: Arc<Network>,
}

/// The threads, owned by the process that started them. `None` only while they are being stopped.
struct Network(Option<Runtime>, Process);

impl Drop for Network {
    fn drop(&mut self) {
        let Network(runtime, process) = self;
        if process.is_current() {
            // Waiting for them would panic in a thread of another runtime.
            runtime.take().into_iter().for_each(Runtime::shutdown_background)
        } else {
            // The threads stayed in the parent process, possibly holding a lock of the runtime.
            std::mem::forget(runtime.take())
        }
    }
}

/// The result of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    Yes,
    /// The object already exists.
    Exists,
}

/// An object with its time, by the bucket's clock.
pub(crate) struct Found {
    pub bytes: Bytes,
    pub meta: ObjectMeta,
}

impl Remote {
    /// The place that a URL names: `s3://bucket/path`, `gs://`, `az://`, `file:///directory`. Endpoint,
    /// region and credentials come from the environment (`AWS_ENDPOINT`, `AWS_ACCESS_KEY_ID`, …), as in the
    /// crate `object_store`. Keys in a URL are never shown: see [`show::url`](sidebloom::show::url).
    ///
    /// # Errors
    /// [`Error::InvalidUrl`].
    pub fn open(url: &str) -> Result<Self> {
        let invalid = |what: String| Error::InvalidUrl { url: show::url(url), what: show::message(&what) };
        let parsed = url::Url::parse(url).map_err(|e| invalid(e.to_string()))?;
        // The clients also accept their settings without prefixes; as environment variables, such names may
        // belong to anything.
        let is_setting = |name: &String| {
            let name = name.to_ascii_lowercase();
            ["aws_", "azure_", "google_"].iter().any(|prefix| name.starts_with(prefix))
        };
        let environment = std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .filter(|(name, _)| is_setting(name));
        let (store, prefix) =
            object_store::parse_url_opts(&parsed, environment).map_err(|e| invalid(e.to_string()))?;
        Self::with_url(Arc::from(store), prefix, url)
    }

    /// A prefix in an object store that the caller has set up.
    ///
    /// # Errors
    /// [`Error::Store`] if the threads cannot be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Result<Self> {
        let url = format!("{store}/{prefix}");
        Self::with_url(store, prefix, &url)
    }

    fn with_url(store: Arc<dyn ObjectStore>, prefix: Path, url: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(NETWORK_THREADS)
            .thread_name("sidebloom-remote")
            .enable_all()
            .build()
            .map_err(|e| {
                sidebloom::Error::io(sidebloom::IoOp::Other("start threads for"), show::url(url), e)
            })?;
        Ok(Remote {
            store,
            prefix,
            folder: "",
            url: show::url(url.trim_end_matches('/')).into(),
            runtime: Arc::new(Network(Some(runtime), Process::current())),
        })
    }

    /// The URL, for messages: without user, password and query.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder at this place; "" is the place itself.
    pub(crate) fn below(&self, folder: &'static str) -> Remote {
        let prefix = Path::from_iter(self.prefix.parts().chain((!folder.is_empty()).then(|| folder.into())));
        Remote { prefix, folder, ..self.clone() }
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Runs a future on the network threads and waits for it. Works in any thread, even of another runtime.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        // A fuzz target's store is in memory, and answers at once.
        #[cfg(fuzzing)]
        return futures_util::FutureExt::now_or_never(future);
        #[cfg(not(fuzzing))]
        {
            let (sender, receiver) = sync_channel(1);
            let task = self.runtime.0.as_ref()?.spawn(async move {
                _ = sender.send(future.await);
            });
            // Otherwise a server could send an endless answer.
            receiver.recv_timeout(LONGEST).inspect_err(|_| task.abort()).ok()
        }
    }

    /// Runs an operation on the store, and names the object in its error.
    pub(crate) fn run<T: Send + 'static, F>(
        &self,
        op: &'static str,
        name: &str,
        operation: impl FnOnce(Arc<dyn ObjectStore>, Path) -> F,
    ) -> Result<T>
    where
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        self.runtime.1.check()?;
        let outcome = self.wait(operation(Arc::clone(&self.store), self.path(name)));
        match outcome {
            Some(outcome) => outcome.map_err(|error| self.error(op, name, &error)),
            None => Err(Error::Bucket { op, object: self.object(name), what: "no answer in time".into() }),
        }
    }

    pub(crate) fn object(&self, name: &str) -> String {
        let Remote { url, folder, .. } = self;
        format!("{url}/{folder}{}{name}", if folder.is_empty() { "" } else { "/" })
    }

    fn error(&self, op: &'static str, name: &str, error: &object_store::Error) -> Error {
        use object_store::Error::{NotFound, PermissionDenied, Unauthenticated};
        let object = self.object(name);
        match error {
            PermissionDenied { .. } | Unauthenticated { .. } => {
                Error::AccessDenied { object, what: show::message(&cause(error)) }
            }
            NotFound { .. } => Error::Expired { object },
            _ => Error::Bucket { op, object, what: show::message(&cause(error)) },
        }
    }

    /// An object of at most `max` bytes; `None` if it does not exist. Reads no more of a larger one, whatever
    /// length the bucket claims.
    pub(crate) fn get_at_most(&self, name: &str, max: u64) -> Result<Option<Found>> {
        let found = self.run("read", name, move |store, path| async move {
            match store.get(&path).await {
                Ok(found) => {
                    let meta = found.meta.clone();
                    Ok(Some((body(found, max).await?, meta)))
                }
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        let Some((bytes, meta)) = found else { return Ok(None) };
        let Some(bytes) = bytes else {
            let what = format!("it has more than {max} bytes");
            return Err(Error::damaged(self.object(name), max, what));
        };
        self.check_len(name, meta.size, bytes.len())?;
        Ok(Some(Found { bytes, meta }))
    }

    /// An object of this length.
    pub(crate) fn get_whole(&self, name: &str, len: u64) -> Result<Bytes> {
        let found = self.get_at_most(name, len)?;
        let found = found.ok_or_else(|| Error::Expired { object: self.object(name) })?;
        self.check_len(name, len, found.bytes.len())?;
        Ok(found.bytes)
    }

    /// A part of an object.
    pub(crate) fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes> {
        let due = range.end.saturating_sub(range.start);
        let bytes = self.run("read", name, move |store, path| async move {
            let options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
            body(store.get_opts(&path, options).await?, due).await
        })?;
        let Some(bytes) = bytes else {
            return Err(Error::damaged(self.object(name), due, format!("more than {due} bytes came")));
        };
        self.check_len(name, due, bytes.len())?;
        Ok(bytes)
    }

    fn check_len(&self, name: &str, due: u64, found: usize) -> Result<()> {
        if found as u64 == due {
            Ok(())
        } else {
            Err(Error::damaged(
                self.object(name),
                found as u64,
                format!("{found} bytes came instead of {due}"),
            ))
        }
    }

    /// The bucket's metadata of an object.
    pub(crate) fn head(&self, name: &str) -> Result<ObjectMeta> {
        self.run("inspect", name, |store, path| async move { store.head(&path).await })
    }

    /// Writes an object, replacing an existing one.
    pub(crate) fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        self.run("write", name, |store, path| async move {
            store.put(&path, PutPayload::from_bytes(bytes)).await.map(drop)
        })
    }

    /// Writes an object unless it exists.
    pub(crate) fn create(&self, name: &str, bytes: Bytes) -> Result<Created> {
        self.run("create", name, |store, path| async move {
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match store.put_opts(&path, PutPayload::from_bytes(bytes), options).await {
                Ok(_) => Ok(Created::Yes),
                Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                    Ok(Created::Exists)
                }
                Err(error) => Err(error),
            }
        })
    }

    /// The objects whose names begin with `name/`, as names below the prefix.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<(String, ObjectMeta)>> {
        let found: Vec<ObjectMeta> = self.run("list", name, |store, path| async move {
            store.list(Some(&path)).take(LISTED_MAX + 1).try_collect().await
        })?;
        if found.len() > LISTED_MAX {
            let what = format!("there are more than {LISTED_MAX} objects; remove obsolete ones");
            return Err(Error::Bucket { op: "list", object: self.object(name), what });
        }
        let named = |meta: ObjectMeta| Some((below(&self.prefix, &meta)?, meta));
        Ok(found.into_iter().filter_map(named).collect())
    }

    /// The largest number in the names that begin with `name/`, however many there are.
    pub(crate) fn largest(&self, name: &str, number_in: fn(&str) -> Option<u64>) -> Result<Option<u64>> {
        let prefix = self.prefix.clone();
        self.run("list", name, move |store, path| async move {
            let mut names = store.list(Some(&path));
            let mut largest = None;
            while let Some(meta) = names.try_next().await? {
                largest = largest.max(below(&prefix, &meta).and_then(|name| number_in(&name)));
            }
            Ok(largest)
        })
    }

    /// Removes an object, if it exists.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        self.run("remove", name, |store, path| async move {
            match store.delete(&path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                outcome => outcome,
            }
        })
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.url).finish()
    }
}

/// An object's name below the prefix.
fn below(prefix: &Path, meta: &ObjectMeta) -> Option<String> {
    let parts: Vec<_> = meta.location.prefix_match(prefix)?.map(|part| part.as_ref().to_owned()).collect();
    Some(parts.join("/"))
}

/// The bytes of an answer; `None` once there are more than `max`, without reading the rest. Allocates as they
/// arrive, not by the length that the bucket claims.
async fn body(found: GetResult, max: u64) -> object_store::Result<Option<Bytes>> {
    if found.range.end.saturating_sub(found.range.start) > max {
        return Ok(None);
    }
    let GetResultPayload::Stream(mut pieces) = found.payload else {
        // A local file, whose length the system told.
        return found.bytes().await.map(Some);
    };
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(piece) = pieces.try_next().await? {
        if (first.len() + all.len() + piece.len()) as u64 > max {
            return Ok(None);
        }
        match (first.is_empty(), all.is_empty()) {
            (true, true) => first = piece,
            (false, _) => {
                // Usually there is one piece, which is not copied.
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&piece);
            }
            (true, false) => all.extend_from_slice(&piece),
        }
    }
    Ok(Some(if all.is_empty() { first } else { all.into() }))
}

/// The whole chain of causes, without repetitions.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = source.source();
    }
    text
}
