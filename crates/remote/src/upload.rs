//! Uploads: whole files under the names of their contents.

use crate::error::{Error, Result};
use crate::generation::{Object, Tail, hex};
use crate::remote::Remote;
use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, WriteMultipart};
use sha2::{Digest, Sha256};
use sidebloom::fs::ReadFile;

/// Size of a read, and of a part of an upload, in bytes.
const PART_BYTES: usize = 8 << 20;
/// Parts of one file that are under way at the same time.
const PARTS_AT_ONCE: usize = 4;

/// The SHA-256 of a file, and of its part from `tail_at` on.
pub(crate) fn digests(file: &dyn ReadFile, tail_at: Option<u64>) -> Result<(Object, Option<Tail>)> {
    let bytes = file.len()?;
    let (mut whole, mut tail, mut at) = (Sha256::new(), Sha256::new(), 0);
    let split = tail_at.unwrap_or(bytes).min(bytes);
    let mut buffer = vec![0; PART_BYTES];
    while at < bytes {
        let end = if at < split { split } else { bytes };
        let piece = usize::try_from(end - at).unwrap_or(usize::MAX).min(PART_BYTES);
        let piece = buffer.get_mut(..piece).unwrap_or_default();
        file.read_exact_at(piece, at)?;
        whole.update(&*piece);
        if at >= split {
            tail.update(&*piece);
        }
        at += piece.len() as u64;
    }
    let object = Object { object: String::new(), bytes, sha256: hex(&whole.finalize()) };
    Ok((object, tail_at.map(|at| Tail { at, sha256: hex(&tail.finalize()) })))
}

/// Uploads a file.
pub(crate) fn file(remote: &Remote, name: &str, file: &dyn ReadFile) -> Result<()> {
    let len = file.len()?;
    if len <= PART_BYTES as u64 {
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        return remote.put(name, Bytes::from(bytes));
    }
    let upload = remote.run("write", name, |store, path| async move { store.put_multipart(&path).await })?;
    let mut writer = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
    let mut at = 0;
    while at < len {
        let mut part = vec![0; PART_BYTES.min((len - at) as usize)];
        let read = file.read_exact_at(&mut part, at).map_err(Error::from);
        at += part.len() as u64;
        // The writer starts tasks, so it is used on the network's threads alone.
        let sent = read.and_then(|()| {
            let mut moved = writer;
            remote.run("write", name, |_, _| async move {
                moved.wait_for_capacity(PARTS_AT_ONCE).await?;
                moved.put(Bytes::from(part));
                Ok(moved)
            })
        });
        writer = sent?;
    }
    remote.run("write", name, |_, _| async move { writer.finish().await.map(drop) })
}

/// Uploads some bytes under the name of their contents, in `folder`.
pub(crate) fn bytes(remote: &Remote, folder: &str, bytes: &[u8]) -> Result<Object> {
    let sha256 = hex(&Sha256::digest(bytes));
    let object = Object { object: object_name(folder, "", &sha256), bytes: bytes.len() as u64, sha256 };
    let (name, payload) = (object.object.clone(), PutPayload::from_bytes(Bytes::copy_from_slice(bytes)));
    remote.run("write", &name, |store, path| async move { store.put(&path, payload).await.map(drop) })?;
    Ok(object)
}

/// The name of an object with these contents. Half of the digest names it: nobody makes two files of it, even on purpose.
pub(crate) fn object_name(folder: &str, stem: &str, sha256: &str) -> String {
    let digest = sha256.get(..32).unwrap_or(sha256);
    match stem {
        "" => format!("{folder}/{digest}"),
        stem => format!("{folder}/{stem}-{digest}"),
    }
}
