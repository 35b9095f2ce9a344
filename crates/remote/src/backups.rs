//! Repositories of backups in object stores.
//!
//! There are no locks. Additions work side by side: each takes the next free number, by a conditional
//! creation. A removal has a *mark*, an object that it creates before it looks which files are needed, and
//! removes at its end. A backup that is complete waits until there is no mark, and then looks whether all of
//! its files are there. If one is not, it is withdrawn. So either the removal sees the backup, or the backup
//! sees what was removed. This needs an object store whose reads and lists are up to date,
//! as those of S3, Google Cloud Storage, Azure and file systems are.
//!
//! A mark that is older than [`REMOVAL_MAX`] was left by a process that died, and counts no more.

use crate::error::{Error, Result};
use crate::remote::{Created, Remote};
use crate::upload::{PART_BYTES, send_stream};
use bytes::Bytes;
use sha2::{Digest, Sha256 as Hasher};
use sidebloom::IoOp;
use sidebloom::backup::{Contents, FILES, Hold, Listed, Purpose, Repository, Sha256, Storage};
use sidebloom::fs::ReadFile;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The mark of a removal.
const REMOVING: &str = "removing";
/// A removal that takes longer is taken for dead.
const REMOVAL_MAX: Duration = Duration::from_secs(3600);
/// The object by which a listing learns what time it is for the bucket.
const CLOCK: &str = "clock";

/// The backups below a URL. The first backup makes it a repository; nothing else may be there.
pub fn backups_at(remote: Remote) -> Repository {
    let place = PathBuf::from(remote.url());
    Repository::new(Arc::new(Bucket { remote, place }))
}

#[derive(Debug, Clone)]
struct Bucket {
    remote: Remote,
    place: PathBuf,
}

/// Errors of a bucket, as those of files.
fn as_io(error: Error) -> sidebloom::Error {
    match error {
        Error::Store(error) => error,
        Error::Damaged { object, offset, what } => sidebloom::Error::corruption(object, offset, what),
        Error::Bucket { op, object, what } => {
            sidebloom::Error::io(IoOp::Other(op), object, std::io::Error::other(what))
        }
        Error::AccessDenied { object, what } => {
            let denied = std::io::Error::new(std::io::ErrorKind::PermissionDenied, what);
            sidebloom::Error::io(IoOp::Other("access"), object, denied)
        }
        Error::Expired { object } => {
            sidebloom::Error::io(IoOp::Read, object, std::io::ErrorKind::NotFound.into())
        }
        other => {
            sidebloom::Error::io(IoOp::Other("use"), "the bucket", std::io::Error::other(other.to_string()))
        }
    }
}

impl Bucket {
    fn created(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        Ok(matches!(self.remote.create(name, Bytes::copy_from_slice(bytes))?, Created::Yes))
    }

    /// Now, by the bucket's clock.
    fn now(&self) -> Result<SystemTime> {
        self.remote.put(CLOCK, Bytes::new())?;
        Ok(self.remote.head(CLOCK)?.last_modified.into())
    }

    /// Whether a removal is going on.
    fn is_removing(&self) -> Result<bool> {
        let mark = match self.remote.head(REMOVING) {
            Err(Error::Expired { .. }) => return Ok(false),
            mark => mark?,
        };
        let age = self.now()?.duration_since(mark.last_modified.into()).unwrap_or_default();
        Ok(age < REMOVAL_MAX)
    }

    fn locked(&self) -> sidebloom::Error {
        sidebloom::Error::Locked { path: PathBuf::from(self.remote.object(REMOVING)) }
    }
}

/// An addition or a reader: nothing is held.
#[derive(Debug)]
struct Watch(Bucket);

impl Hold for Watch {
    fn confirm(&self) -> sidebloom::Result<()> {
        if self.0.is_removing().map_err(as_io)? { Err(self.0.locked()) } else { Ok(()) }
    }

    fn is_exclusive(&self) -> bool {
        false
    }
}

/// A removal's mark.
#[derive(Debug)]
struct Mark {
    bucket: Bucket,
    since: std::time::Instant,
}

impl Hold for Mark {
    /// A removal that has become too old might be taken for dead, and must not go on.
    fn confirm(&self) -> sidebloom::Result<()> {
        if self.since.elapsed() < REMOVAL_MAX / 2 { Ok(()) } else { Err(self.bucket.locked()) }
    }

    fn is_exclusive(&self) -> bool {
        false
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Err(error) = self.bucket.remote.remove(REMOVING) {
            tracing::warn!(%error, "cannot remove the mark of a removal: for an hour, nothing can be backed up here");
        }
    }
}

/// An object that is read by ranges.
#[derive(Debug)]
struct Object {
    remote: Remote,
    name: String,
    bytes: u64,
    path: PathBuf,
}

impl ReadFile for Object {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> sidebloom::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let end = offset.saturating_add(buf.len() as u64);
        if end > self.bytes {
            return Err(sidebloom::Error::corruption(&self.path, self.bytes, "the object ends here"));
        }
        let bytes = self.remote.get_range(&self.name, offset..end).map_err(as_io)?;
        buf.copy_from_slice(&bytes); // `get_range` has compared the length.
        Ok(())
    }

    fn len(&self) -> sidebloom::Result<u64> {
        Ok(self.bytes)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Storage for Bucket {
    fn place(&self) -> &Path {
        &self.place
    }

    fn list(&self, folder: &str) -> sidebloom::Result<Vec<Listed>> {
        let found = self.remote.list(folder).map_err(as_io)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        // Ages matter to removals alone.
        let now = if folder == FILES { self.now().map_err(as_io)? } else { SystemTime::UNIX_EPOCH };
        let in_folder = |name: String| name.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        let listed = found.into_iter().filter_map(|(name, meta)| {
            let age = now.duration_since(meta.last_modified.into()).unwrap_or_default();
            Some(Listed { name: in_folder(name)?, bytes: meta.size, age })
        });
        Ok(listed.collect())
    }

    fn open(&self, name: &str) -> sidebloom::Result<Option<Arc<dyn ReadFile>>> {
        let bytes = match self.remote.head(name) {
            Err(Error::Expired { .. }) => return Ok(None),
            meta => meta.map_err(as_io)?.size,
        };
        let path = PathBuf::from(self.remote.object(name));
        Ok(Some(Arc::new(Object { remote: self.remote.clone(), name: name.to_owned(), bytes, path })))
    }

    /// Reads the contents twice: the name has to be known before anything is sent. A file of up to 8 MiB is
    /// kept from the first time.
    fn put(&self, contents: &dyn Contents) -> sidebloom::Result<Sha256> {
        let (mut sha256, mut kept, mut bytes) = (Hasher::new(), Some(Vec::new()), 0);
        contents.read(&mut |piece| {
            sha256.update(piece);
            bytes += piece.len();
            match &mut kept {
                Some(kept) if bytes <= PART_BYTES => kept.extend_from_slice(piece),
                kept => *kept = None,
            }
            Ok(())
        })?;
        let sha256: Sha256 = sha256.finalize().into();
        let name = format!("{FILES}/{}", crate::generation::hex(&sha256));
        match kept {
            Some(kept) => self.remote.put(&name, kept.into()).map_err(as_io)?,
            None => send_stream(&self.remote, &name, &mut |each| {
                contents.read(&mut |piece| each(piece).map_err(as_io)).map_err(Error::from)
            })
            .map_err(as_io)?,
        }
        Ok(sha256)
    }

    fn sync(&self) -> sidebloom::Result<()> {
        Ok(())
    }

    fn create(&self, name: &str, bytes: &[u8]) -> sidebloom::Result<bool> {
        self.created(name, bytes).map_err(as_io)
    }

    fn remove(&self, name: &str) -> sidebloom::Result<()> {
        self.remote.remove(name).map_err(as_io)
    }

    fn lock(&self, purpose: Purpose) -> sidebloom::Result<Box<dyn Hold>> {
        let is_removing = || self.is_removing().map_err(as_io);
        match purpose {
            Purpose::Read => Ok(Box::new(Watch(self.clone()))),
            Purpose::Add if is_removing()? => Err(self.locked()),
            Purpose::Add => Ok(Box::new(Watch(self.clone()))),
            Purpose::Remove => {
                let since = std::time::Instant::now();
                if !self.create(REMOVING, &[])? {
                    if is_removing()? {
                        return Err(self.locked());
                    }
                    self.remote.put(REMOVING, Bytes::new()).map_err(as_io)?;
                }
                Ok(Box::new(Mark { bucket: self.clone(), since }))
            }
        }
    }
}
