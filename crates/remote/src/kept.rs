//! Files that are kept on this machine, under the SHA-256 of their contents.
//!
//! What is found under such a name is believed only after its contents were hashed, once in each process and for each file: a name and a
//! length say nothing. All of a file is hashed before its first use, not by pieces: the engine maps filters, and looks into each
//! index when it opens the segment, so nothing would be saved.

use crate::error::{Error, Result};
use crate::generation::{hex, is_sha256};
use crate::private::{self, Temporary};
use crate::remote::Remote;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a request, and so what one download needs of memory.
pub(crate) const PART_BYTES: u64 = 16 << 20;
/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A directory of such files.
#[derive(Debug)]
pub(crate) struct Kept {
    dir: PathBuf,
    /// Files whose contents were hashed by this process, as they were then.
    sound: Mutex<HashMap<String, Stamp>>,
}

/// What changes with the contents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let changed = (meta.ctime(), meta.ctime_nsec());
        Stamp { device: meta.dev(), inode: meta.ino(), len: meta.len(), changed }
    }
}

/// A part of an object.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    pub object: &'a str,
    pub range: Range<u64>,
    /// In hex, 64 digits.
    pub sha256: &'a str,
}

impl Kept {
    pub fn new(dir: &Path) -> Self {
        Kept { dir: dir.to_path_buf(), sound: Mutex::default() }
    }

    /// Where contents with this hash are.
    pub fn path(&self, sha256: &str) -> PathBuf {
        self.dir.join(sha256)
    }

    fn sound(&self) -> MutexGuard<'_, HashMap<String, Stamp>> {
        self.sound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches a part, unless it is here. Returns the bytes that were fetched.
    pub fn fetch(&self, remote: &Remote, part: &Part<'_>) -> Result<u64> {
        let path = self.path(part.sha256);
        match self.is_sound(&path, part) {
            Ok(true) => Ok(0),
            Ok(false) => {
                self.download(remote, part, &path)?;
                Ok(part.range.end - part.range.start)
            }
            Err(error) => Err(Error::file("read", path)(error)),
        }
    }

    fn is_sound(&self, path: &Path, part: &Part<'_>) -> io::Result<bool> {
        let Some((mut file, meta)) = private::open(path)? else { return Ok(false) };
        if meta.len() != part.range.end - part.range.start {
            return Ok(false);
        }
        let stamp = Stamp::of(&meta);
        if self.sound().get(part.sha256) == Some(&stamp) {
            return Ok(true);
        }
        let is_sound = hash(&mut file)? == part.sha256;
        if is_sound && Stamp::of(&file.metadata()?) == stamp {
            self.sound().insert(part.sha256.to_owned(), stamp);
        }
        Ok(is_sound)
    }

    fn download(&self, remote: &Remote, part: &Part<'_>, path: &Path) -> Result<()> {
        let mut fresh = Temporary::create(&self.dir)?;
        copy(remote, part, &mut fresh.file, path, &mut |_| ())?;
        let meta = fresh.file.metadata().map_err(Error::file("inspect", path))?;
        fresh.keep(path).map_err(Error::file("write", path))?;
        // Renaming changes the time of the last change.
        match private::open(path) {
            Ok(Some((_, renamed))) if renamed.ino() == meta.ino() && renamed.len() == meta.len() => {
                self.sound().insert(part.sha256.to_owned(), Stamp::of(&renamed));
                Ok(())
            }
            Ok(_) => Ok(()), // Another reader has put its own there.
            Err(error) => Err(Error::file("read", path)(error)),
        }
    }

    /// Whether a file has such a name, and is none of these.
    pub fn is_unused(name: &OsStr, used: &HashSet<String>) -> bool {
        name.to_str().is_some_and(|name| is_sha256(name) && !used.contains(name) || Temporary::is_name(name))
    }
}

/// Copies a part of an object to a file, with its bytes reported as they come, and checks its hash.
pub(crate) fn copy(
    remote: &Remote,
    part: &Part<'_>,
    file: &mut File,
    path: &Path,
    copied: &mut dyn FnMut(u64),
) -> Result<()> {
    let (mut at, mut digest) = (part.range.start, Sha256::new());
    while at < part.range.end {
        let end = part.range.end.min(at.saturating_add(PART_BYTES));
        let bytes = match (at, end == part.range.end) {
            (0, true) => remote.get_whole(part.object, end)?,
            _ => remote.get_range(part.object, at..end)?,
        };
        digest.update(&bytes);
        file.write_all(&bytes).map_err(Error::file("write", path))?;
        copied(end - at);
        at = end;
    }
    match hex(&digest.finalize()) == part.sha256 {
        true => Ok(()),
        false => {
            let what = "its contents are not those that its generation names";
            Err(Error::damaged(remote.object(part.object), part.range.start, what))
        }
    }
}

/// Refuses what the disk has no room for, before any of it is fetched: sizes are only claims until then.
pub(crate) fn check_room(remote: &Remote, dir: &Path, mut sizes: impl Iterator<Item = u64>) -> Result<u64> {
    let sum = sizes.try_fold(0u64, u64::checked_add);
    let free = rustix::fs::statvfs(dir).map_err(|e| Error::file("inspect", dir)(e.into()))?;
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    match sum {
        Some(sum) if sum <= free => Ok(sum),
        sum => {
            let claimed = sum.map_or("more than 2^64".to_owned(), |sum| sum.to_string());
            let what = format!("{} says that it has {claimed} bytes; {free} are free", remote.url());
            Err(Error::file("write to", dir)(io::Error::new(io::ErrorKind::StorageFull, what)))
        }
    }
}

fn hash(file: &mut File) -> io::Result<String> {
    let (mut digest, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&digest.finalize())),
            read => digest.update(piece.get(..read).unwrap_or_default()),
        }
    }
}
