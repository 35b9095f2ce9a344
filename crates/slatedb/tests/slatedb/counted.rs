//! An object store that records which bytes of SST files are read.

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use slatedb::object_store::memory::InMemory;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

/// A store in memory, and the reads of it.
#[derive(Debug, Default)]
pub struct Counted {
    inner: InMemory,
    reads: Mutex<Vec<(String, Range<u64>)>>,
}

impl Counted {
    /// The reads since the last call: the file's name, and the bytes.
    pub fn take_reads(&self) -> Vec<(String, Range<u64>)> {
        std::mem::take(&mut self.reads.lock().unwrap())
    }

    fn note(&self, location: &Path, range: Range<u64>) {
        let name = location.filename().unwrap_or_default().to_owned();
        self.reads.lock().unwrap().push((name, range));
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counted")
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        match &options.range {
            Some(GetRange::Bounded(range)) => self.note(from, range.clone()),
            Some(GetRange::Offset(start)) => self.note(from, *start..u64::MAX),
            Some(GetRange::Suffix(_)) => self.note(from, u64::MAX..u64::MAX),
            None => self.note(from, 0..u64::MAX),
        }
        self.inner.get_opts(from, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
