//! Uploads whole files, named by their contents.

use crate::error::Result;
use crate::generation::{File, Generation, Object, Tail, hex, sha256};
use crate::parallel::{self, AT_ONCE};
use crate::remote::Remote;
use bytes::Bytes;
use object_store::{ObjectStoreExt, WriteMultipart};
use sha2::{Digest, Sha256};
use sidebloom::fs::ReadFile;
use sidebloom::internal::sidecar_head;
use std::collections::HashMap;
use std::sync::Arc;

/// Size of a read, of a part of an upload, and of the largest file sent in one request, in bytes.
pub(crate) const PART_BYTES: usize = 8 << 20;
/// Concurrent parts of one file.
const PARTS_AT_ONCE: usize = 4;

/// The files of the next generation. Those already in the last one are not uploaded again. An upload replaces
/// an object of the same name, which a collection may be about to remove.
pub(crate) struct Upload<'a> {
    remote: &'a Remote,
    parent: Option<&'a Generation>,
    known: HashMap<&'a str, &'a File>,
    /// Small files still to be sent, concurrently.
    pending: Vec<(String, Bytes)>,
    contents: Contents,
}

/// What was uploaded, or already existed.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub files: Vec<File>,
    pub manifest: Object,
    /// Files uploaded, without the manifest.
    pub sent: u64,
    /// Whether the manifest was uploaded.
    pub sent_manifest: bool,
    pub bytes: u64,
}

impl<'a> Upload<'a> {
    pub fn new(remote: &'a Remote, parent: Option<&'a Generation>) -> Self {
        let known = parent.iter().flat_map(|parent| &parent.files).map(|file| (&*file.name, file)).collect();
        Upload { remote, parent, known, pending: Vec::new(), contents: Contents::default() }
    }

    /// Uploads a segment, unless the last generation has it.
    pub fn segment(
        &mut self,
        name: String,
        digest: u64,
        bytes: u64,
        tail_at: u64,
        open: impl FnOnce() -> Result<Arc<dyn ReadFile>>,
    ) -> Result<()> {
        let mark = format!("{digest:016x}");
        if self.is_known(&name, &mark, bytes) {
            Ok(())
        } else {
            self.send("segment", name, mark, &*open()?, Some(tail_at))
        }
    }

    /// Uploads a sidecar, unless the last generation has it. Sidecars change when filters are rebuilt;
    /// segments do not.
    pub fn sidecar(&mut self, name: String, file: &dyn ReadFile) -> Result<()> {
        let bytes = file.len()?;
        let mark = sha256(&sidecar_head(file)?);
        if self.is_known(&name, &mark, bytes) { Ok(()) } else { self.send("filter", name, mark, file, None) }
    }

    /// Finishes with the manifest.
    pub fn finish(mut self, manifest: &[u8]) -> Result<Contents> {
        self.send_pending()?;
        let (sha256, bytes) = (sha256(manifest), manifest.len() as u64);
        let object = Object { object: object_name("manifest", "", &sha256), bytes, sha256 };
        if self.parent.is_none_or(|parent| parent.manifest != object) {
            self.remote.put(&object.object, Bytes::copy_from_slice(manifest))?;
            self.contents.sent_manifest = true;
            self.contents.bytes += bytes;
        }
        self.contents.manifest = object;
        Ok(self.contents)
    }

    /// Takes a file over from the last generation, if that has it.
    fn is_known(&mut self, name: &str, mark: &str, bytes: u64) -> bool {
        let known = self.known.get(name).filter(|file| file.mark == mark && file.object.bytes == bytes);
        self.contents.files.extend(known.map(|file| (*file).clone()));
        known.is_some()
    }

    fn send(
        &mut self,
        folder: &str,
        name: String,
        mark: String,
        file: &dyn ReadFile,
        tail_at: Option<u64>,
    ) -> Result<()> {
        let bytes = file.len()?;
        let (mut object, tail) = digests(file, bytes, tail_at)?;
        object.object = object_name(folder, name.split('.').next().unwrap_or(&name), &object.sha256);
        if bytes <= PART_BYTES as u64 {
            self.pending.push((object.object.clone(), read(file, 0, bytes)?.into()));
            if self.pending.len() >= AT_ONCE {
                self.send_pending()?;
            }
        } else {
            send_parts(self.remote, &object.object, file, bytes)?;
        }
        self.contents.sent += 1;
        self.contents.bytes += bytes;
        self.contents.files.push(File { name, object, mark, tail });
        Ok(())
    }

    fn send_pending(&mut self) -> Result<()> {
        let files = std::mem::take(&mut self.pending);
        parallel::for_each(&files, |(name, bytes)| self.remote.put(name, bytes.clone()))
    }
}

fn read(file: &dyn ReadFile, at: u64, end: u64) -> Result<Vec<u8>> {
    let mut piece = vec![0; PART_BYTES.min(usize::try_from(end - at).unwrap_or(usize::MAX))];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece)
}

/// The SHA-256 of a file, and of its part from `tail_at` on.
fn digests(file: &dyn ReadFile, bytes: u64, tail_at: Option<u64>) -> Result<(Object, Option<Tail>)> {
    let (mut whole, mut tail, mut at) = (Sha256::new(), Sha256::new(), 0);
    let split = tail_at.unwrap_or(bytes).min(bytes);
    while at < bytes {
        let piece = read(file, at, if at < split { split } else { bytes })?;
        whole.update(&piece);
        if at >= split {
            tail.update(&piece);
        }
        at += piece.len() as u64;
    }
    let object = Object { object: String::new(), bytes, sha256: hex(&whole.finalize()) };
    Ok((object, tail_at.map(|at| Tail { at, sha256: hex(&tail.finalize()) })))
}

fn send_parts(remote: &Remote, name: &str, file: &dyn ReadFile, bytes: u64) -> Result<()> {
    send_stream(remote, name, &mut |each| {
        let mut at = 0;
        while at < bytes {
            let part = read(file, at, bytes)?;
            at += part.len() as u64;
            each(&part)?;
        }
        Ok(())
    })
}

/// Passes the pieces of a file to the function that it is given.
pub(crate) type Pieces<'a> = dyn FnMut(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

/// Uploads what `read` passes on, in parts. After an error, there is no such object.
pub(crate) fn send_stream(remote: &Remote, name: &str, read: &mut Pieces<'_>) -> Result<()> {
    let upload = remote.run("write", name, |store, path| async move { store.put_multipart(&path).await })?;
    let mut writer = Some(WriteMultipart::new_with_chunk_size(upload, PART_BYTES));
    let sent = read(&mut |piece| {
        let (part, taken) = (Bytes::copy_from_slice(piece), writer.take());
        // The writer starts tasks, so it is used only on the network threads.
        writer = remote.run("write", name, |_, _| async move {
            let Some(mut moved) = taken else { return Ok(None) };
            moved.wait_for_capacity(PARTS_AT_ONCE).await?;
            moved.put(part);
            Ok(Some(moved))
        })?;
        Ok(())
    });
    let writer = writer.take();
    match sent {
        Ok(()) => remote.run("write", name, |_, _| async move {
            match writer {
                Some(writer) => writer.finish().await.map(drop),
                None => Ok(()),
            }
        }),
        Err(error) => {
            if let Some(writer) = writer {
                let _ = remote.run("abort", name, |_, _| async move { writer.abort().await });
            }
            Err(error)
        }
    }
}

/// The name of an object with these contents. Half of the digest is enough: nobody can make two files with
/// the same, even on purpose.
fn object_name(folder: &str, stem: &str, sha256: &str) -> String {
    let digest = sha256.get(..32).unwrap_or(sha256);
    match stem {
        "" => format!("{folder}/{digest}"),
        stem => format!("{folder}/{stem}-{digest}"),
    }
}
