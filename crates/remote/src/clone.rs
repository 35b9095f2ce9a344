//! Cloning: the whole of a published store becomes a directory on this machine.

use crate::error::{Error, Result};
use crate::generation::File;
use crate::kept::{self, Part, check_room};
use crate::lost::LostFilter;
use crate::remote::Remote;
use crate::{find, lineage};
use sidebloom::fs::{RealFs, create_dir_durably};
use std::fs;
use std::path::Path;

/// Copies the newest generation at a place into a new directory, which is then a store that can be written, and published as the next
/// generation. `progress` gets the bytes that were copied and all of them. A filter that the bucket does not have, or not as it was written, is
/// left out with a warning: the store builds it anew. Returns the generation.
///
/// # Errors
/// [`Error::NotPublished`]; [`Error::Store`] if the directory exists; [`Error::Damaged`] for a file that is not what its writer wrote;
/// [`Error::File`] if the disk has no room for what the generation says that it has; the errors of
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
    let all = check_room(remote, dir, generation.objects().map(|object| object.bytes))?;
    let mut done = 0;
    fs::File::create_new(dir.join("LOCK")).map_err(Error::file("create", dir.join("LOCK")))?;
    // The manifest turns the directory into a store, so it comes last.
    for file in &generation.files {
        let before = done;
        let copied = copy(remote, dir, file, &mut |bytes| {
            done += bytes;
            progress(done, all);
        });
        if let Err(error) = copied {
            LostFilter::from_error(file, error)?.warn();
            let path = dir.join(&file.name);
            fs::remove_file(&path).map_err(Error::file("remove", &path))?;
            done = before + file.object.bytes;
        }
    }
    sync(dir)?;
    lineage::note(dir, remote.url(), generation.number)?;
    copy(remote, dir, &generation.manifest_file(), &mut |_| progress(all, all))?;
    sync(dir)?;
    Ok(generation.number)
}

fn sync(dir: &Path) -> Result<()> {
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::file("sync", dir))
}

fn copy(remote: &Remote, dir: &Path, file: &File, copied: &mut dyn FnMut(u64)) -> Result<()> {
    let path = dir.join(&file.name);
    let mut copy = fs::File::create_new(&path).map_err(Error::file("create", &path))?;
    let object = &file.object;
    let whole = Part { object: &object.object, range: 0..object.bytes, sha256: &object.sha256 };
    kept::copy(remote, &whole, &mut copy, &path, copied)?;
    copy.sync_all().map_err(Error::file("sync", &path))
}
