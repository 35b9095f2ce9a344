//! An object store that sends more than it should.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How objects whose names contain a text are answered.
#[derive(Debug, Clone, Copy)]
pub enum Lie {
    /// They claim this length, and never end.
    Endless { said: u64 },
    /// They claim the requested or the original length, and never end.
    LongerThanSaid,
}

#[derive(Debug)]
pub struct Hostile {
    pub inner: Arc<dyn ObjectStore>,
    pub of: String,
    pub lie: Lie,
    pub bytes_sent: Arc<AtomicU64>,
}

impl fmt::Display for Hostile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hostile")
    }
}

const PIECE: usize = 64 << 10;

#[async_trait]
impl ObjectStore for Hostile {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_part = options.range.is_some();
        let mut found = self.inner.get_opts(location, options).await?;
        if location.as_ref().contains(&self.of) {
            if let Lie::Endless { said } = self.lie
                && !is_part
            {
                (found.meta.size, found.range) = (said, 0..said);
            }
            let sent = Arc::clone(&self.bytes_sent);
            let pieces = stream::repeat_with(move || {
                sent.fetch_add(PIECE as u64, Relaxed);
                Ok(Bytes::from(vec![b'1'; PIECE]))
            });
            found.payload = GetResultPayload::Stream(pieces.boxed());
        }
        Ok(found)
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
