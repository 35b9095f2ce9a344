//! Cloning: the whole of a published store becomes a directory on this machine.

use crate::error::{Error, Result};
use crate::generation::{File, Object, hex};
use crate::remote::Remote;
use crate::{find, lineage};
use sha2::{Digest, Sha256};
use sidebloom::FileSet;
use sidebloom::fs::{RealFs, create_dir_durably};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Bytes of a request.
const PART_BYTES: u64 = 16 << 20;

/// Copies the newest generation at a place into a new directory, which is then a store that can be written, and published as the next
/// generation. `progress` gets the bytes that were copied and all of them. Returns the generation.
///
/// # Errors
/// [`Error::NotPublished`]; [`Error::Store`] if the directory exists; [`Error::Damaged`] for a file that is not what its writer wrote; the errors of
/// the bucket and of the directory, in which an incomplete copy stays: it is no store, and can be removed.
pub fn clone(remote: &Remote, dir: impl AsRef<Path>, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
    let dir = dir.as_ref();
    let generation = find::newest(remote, None)?.ok_or_else(|| Error::NotPublished {
        url: remote.url().to_owned(),
        what: "it has no generation".into(),
    })?;
    if dir.exists() {
        return Err(sidebloom::Error::AlreadyExists { path: dir.to_path_buf() }.into());
    }
    create_dir_durably(&RealFs, dir)?;
    let manifest = File {
        name: FileSet::MANIFEST.into(),
        mark: String::new(),
        object: generation.manifest.clone(),
        tail: None,
    };
    let all: u64 = generation.objects().map(|object| object.bytes).sum();
    let mut done = 0;
    fs::File::create_new(dir.join("LOCK")).map_err(Error::file("create", dir.join("LOCK")))?;
    // The manifest turns the directory into a store, so it comes last.
    for file in &generation.files {
        copy(remote, &dir.join(&file.name), &file.object, &mut |bytes| {
            done += bytes;
            progress(done, all);
        })?;
    }
    sync(dir)?;
    lineage::note(dir, remote.url(), generation.number)?;
    copy(remote, &dir.join(&manifest.name), &manifest.object, &mut |_| progress(all, all))?;
    sync(dir)?;
    Ok(generation.number)
}

fn sync(dir: &Path) -> Result<()> {
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::file("sync", dir))
}

fn copy(remote: &Remote, path: &Path, object: &Object, copied: &mut dyn FnMut(u64)) -> Result<()> {
    let mut file = fs::File::create_new(path).map_err(Error::file("create", path))?;
    let (mut at, mut digest) = (0, Sha256::new());
    while at < object.bytes {
        let end = object.bytes.min(at + PART_BYTES);
        let bytes = remote.get_range(&object.object, at..end)?;
        digest.update(&bytes);
        file.write_all(&bytes).map_err(Error::file("write", path))?;
        copied(end - at);
        at = end;
    }
    if hex(&digest.finalize()) != object.sha256 {
        return Err(Error::damaged(
            remote.object(&object.object),
            0,
            "its contents are not those that its generation names",
        ));
    }
    file.sync_all().map_err(Error::file("sync", path))
}
