//! An object store that counts requests and can refuse them.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Counts by method and folder, such as `get gen`; `range segment` for parts of an object.
#[derive(Debug, Clone)]
pub struct Counting {
    pub inner: Arc<dyn ObjectStore>,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<String, u64>,
    bytes_read: u64,
    /// How many more objects may be written or removed.
    writes_left: Option<u64>,
}

impl Counting {
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Counting { inner, counts: Arc::default() }
    }

    pub fn reset(&self) {
        *self.counts.lock().unwrap() = Counts::default();
    }

    pub fn requests(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap().requests.clone()
    }

    pub fn bytes_read(&self) -> u64 {
        self.counts.lock().unwrap().bytes_read
    }

    /// Fails every write and removal after this many, as if the process had been killed before it.
    pub fn stop_after_writes(&self, writes: Option<u64>) {
        self.counts.lock().unwrap().writes_left = writes;
    }

    fn count(&self, method: &str, location: &Path) {
        let mut parts = location.parts().map(|part| part.as_ref().to_owned()).collect::<Vec<_>>();
        parts.reverse();
        let folder = if parts.first().is_some_and(|name| name == "latest") {
            "latest".into()
        } else {
            parts.get(1).cloned().unwrap_or_default()
        };
        *self.counts.lock().unwrap().requests.entry(format!("{method} {folder}")).or_default() += 1;
    }

    fn begin_write(&self, location: &Path) -> Result<()> {
        self.begin("put", location)
    }

    fn begin(&self, method: &str, location: &Path) -> Result<()> {
        self.count(method, location);
        match &mut self.counts.lock().unwrap().writes_left {
            Some(0) => Err(object_store::Error::Generic { store: "test", source: "stopped".into() }),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.begin_write(location)?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.begin_write(location)?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let method = match (options.head, &options.range) {
            (true, _) => "head",
            (_, Some(_)) => "range",
            _ => "get",
        };
        self.count(method, location);
        if let Some(GetRange::Bounded(range)) = &options.range {
            self.counts.lock().unwrap().bytes_read += range.end - range.start;
        }
        let found = self.inner.get_opts(location, options).await?;
        if method == "get" {
            self.counts.lock().unwrap().bytes_read += found.meta.size;
        }
        Ok(found)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let begun = locations.map(move |location| {
            let location = location?;
            this.begin("delete", &location)?;
            Ok(location)
        });
        self.inner.delete_stream(begun.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.count("list", &prefix.cloned().unwrap_or_default().join("x"));
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// Replaces an object by the result of `change`.
pub fn damage(store: &dyn ObjectStore, location: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    use object_store::ObjectStoreExt;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut bytes = store.get(location).await.unwrap().bytes().await.unwrap().to_vec();
        change(&mut bytes);
        store.put(location, PutPayload::from_bytes(Bytes::from(bytes))).await.unwrap();
    });
}
