//! The object store, with a runtime of its own: the callers are threads.

use super::error::{Error, Result};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// A place in an object store, for the states of one guard. A clone is the same place.
#[derive(Debug, Clone)]
pub struct GuardStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    objects: Objects,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Waiting for the threads would be a panic within another runtime.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// What the runtime's tasks use.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

/// An object that was read.
pub(super) struct Object {
    pub bytes: Bytes,
    /// By the clock of the store.
    pub modified: SystemTime,
}

impl GuardStore {
    /// A place by its URL: `s3://`, `gs://` and `az://`, as far as the features of this crate have them, and `file:///`. Credentials
    /// and other settings come from the environment: variables that begin with `AWS_`, `GOOGLE_` or `AZURE_`, as `object_store` names them.
    ///
    /// # Errors
    /// [`Error::InvalidUrl`].
    pub fn open(url: &str) -> Result<Self> {
        let invalid = |what: String| Error::InvalidUrl { url: url.to_owned(), what };
        let parsed =
            Url::parse(url).map_err(|e| invalid(format!("{e}; for a directory, use file:///PATH")))?;
        // The store also knows its settings without their prefixes; as variables, those may belong to anybody.
        let is_setting =
            |name: &String| ["aws_", "google_", "azure_"].iter().any(|prefix| name.starts_with(prefix));
        let env = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?.to_ascii_lowercase();
            is_setting(&name).then_some((name, value.into_string().ok()?))
        });
        let (store, prefix) =
            object_store::parse_url_opts(&parsed, env).map_err(|e| invalid(e.to_string()))?;
        Self::with_store(store.into(), prefix.as_ref())
    }

    /// A place below `prefix` in a store of the caller's.
    ///
    /// # Errors
    /// [`Error::InvalidUrl`] for a prefix that no object can have; [`Error::File`] if there are no threads.
    pub fn with_store(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self> {
        let prefix = Path::parse(prefix)
            .map_err(|e| Error::InvalidUrl { url: prefix.to_owned(), what: e.to_string() })?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("sidebloom-remote")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|e| Error::file("start a thread for", prefix.as_ref().as_ref(), e))?;
        Ok(GuardStore {
            shared: Arc::new(Shared { objects: Objects { store, prefix }, runtime: Some(runtime) }),
        })
    }

    /// A name for errors, and to tell places apart.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.shared.objects.store, self.shared.objects.prefix)
    }

    /// Runs a task and waits for it. May be called anywhere, also within another runtime.
    pub(super) fn run<T, F, R>(&self, task: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(Objects) -> R,
        R: Future<Output = Result<T>> + Send + 'static,
    {
        let (send, receive) = mpsc::sync_channel(1);
        let task = task(self.shared.objects.clone());
        let Some(runtime) = &self.shared.runtime else { return Err(Error::Interrupted) };
        runtime.spawn(async move {
            let _ = send.send(task.await); // Nobody waits any more.
        });
        receive.recv().unwrap_or(Err(Error::Interrupted))
    }
}

fn time(meta: &ObjectMeta) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0))
}

impl Objects {
    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn failed(&self, name: &str, error: object_store::Error) -> Error {
        Error::Store { object: self.path(name).to_string(), source: Arc::new(error) }
    }

    /// An object of at most `max` bytes; `None` if there is none.
    pub async fn get(&self, name: &str, max: u64) -> Result<Option<Object>> {
        let got = match self.store.get_opts(&self.path(name), GetOptions::default()).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.failed(name, error)),
        };
        let (size, modified) = (got.meta.size, time(&got.meta));
        if size > max {
            return Err(Error::damaged(name, 0, format!("it has {size} bytes, more than {max}")));
        }
        let bytes = got.bytes().await.map_err(|error| self.failed(name, error))?;
        if bytes.len() as u64 != size {
            return Err(Error::damaged(
                name,
                bytes.len(),
                format!("the store has sent less than its {size} bytes"),
            ));
        }
        Ok(Some(Object { bytes, modified }))
    }

    /// Creates an object; false if there is one with this name.
    pub async fn create(&self, name: &str, bytes: Bytes) -> Result<bool> {
        match self.store.put_opts(&self.path(name), bytes.into(), PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// Creates or replaces an object.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let put = self.store.put(&self.path(name), bytes.into()).await;
        put.map(|_| ()).map_err(|error| self.failed(name, error))
    }

    /// The names in a directory, with their times by the clock of the store.
    pub async fn list(&self, dir: &str) -> Result<Vec<(String, SystemTime)>> {
        let listed: Vec<_> = self
            .store
            .list(Some(&self.path(dir)))
            .try_collect()
            .await
            .map_err(|error| self.failed(dir, error))?;
        let named = |meta: &ObjectMeta| Some((meta.location.filename()?.to_owned(), time(meta)));
        Ok(listed.iter().filter_map(named).collect())
    }

    /// When an object was last written, by the clock of the store.
    pub async fn modified(&self, name: &str) -> Result<SystemTime> {
        let head = self.store.head(&self.path(name)).await.map_err(|error| self.failed(name, error))?;
        Ok(time(&head))
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(name, error)),
        }
    }
}
