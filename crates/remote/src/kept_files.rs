//! Files kept on this machine, named by the SHA-256 of their contents: ends of segments, other files whole.
//!
//! ```text
//! DIR/store-HHHH…        one directory for each kind and URL, with 32 hex digits of the URL's SHA-256,
//!                        mode 0700; a guard's is guard-HHHH…
//!     HHHH…              what is kept: 64 hex digits
//!     newest-HHHH…       the newest generation that was seen (newest_seen.rs)
//!     readers.lock, newest.lock
//!     N-N.tmp            a file that is being written
//!     blocks-N-N.cache   the blocks of one reader
//! ```
//!
//! Several readers, in this process and in others, may share a directory. Files appear whole, by renaming,
//! and never change. Only files with these names are ever removed, and nothing outside the URL's directory is
//! touched.
//!
//! A file is trusted only after its contents were hashed, once per process and file: a name and a length
//! prove nothing. The whole file is hashed before its first use. Hashing it in pieces would save nothing,
//! since the engine maps filters, and reads each index when it opens the segment.

use crate::error::{Error, Result};
use crate::find_generation::Generations;
use crate::generation::{self, hex, is_sha256};
use crate::parallel;
use crate::private_files::{self, Temporary};
use crate::remote::Remote;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Bytes of a request, and so the memory that a download needs.
pub(crate) const PART_BYTES: u64 = 16 << 20;
/// Bytes hashed at a time.
const PIECE_BYTES: usize = 64 << 10;

/// A directory of kept files.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    pub dir: PathBuf,
    /// Files hashed by this process, with their state at that time.
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

impl<'a> Part<'a> {
    /// The part of a file that is kept.
    fn of(file: &'a generation::File) -> Self {
        let (at, sha256) = match &file.tail {
            Some(tail) => (tail.at, &tail.sha256),
            None => (0, &file.object.sha256),
        };
        Part { object: &file.object.object, range: at..file.object.bytes, sha256 }
    }
}

impl KeptFiles {
    /// The directory below `root` for these generations.
    pub fn open(root: &Path, generations: &Generations) -> Result<Self> {
        let hash = generation::sha256(generations.remote.url().as_bytes());
        let name = format!("{}-{}", generations.kind, hash.get(..32).unwrap_or(&hash));
        Ok(KeptFiles { dir: private_files::dir(root, &name)?, sound: Mutex::default() })
    }

    /// The path of a file, or of its tail.
    pub fn path(&self, file: &generation::File) -> PathBuf {
        self.dir.join(Part::of(file).sha256)
    }

    /// Fetches the missing ones of these files, if the disk has room. `failed` may turn an error into the end
    /// of that. Returns the bytes fetched.
    pub fn fetch(
        &self,
        remote: &Remote,
        files: &[&generation::File],
        failed: impl Fn(&generation::File, Error) -> Result<()> + Sync,
    ) -> Result<u64> {
        let missing = files.iter().filter(|file| !self.path(file).exists()).map(|file| Part::of(file).range);
        check_room(remote, &self.dir, missing.map(|range| range.end - range.start))?;
        let bytes = AtomicU64::new(0);
        parallel::for_each(files, |file| match self.fetch_part(remote, &Part::of(file)) {
            Ok(fetched) => {
                bytes.fetch_add(fetched, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => failed(file, error),
        })?;
        Ok(bytes.into_inner())
    }

    fn sound(&self) -> MutexGuard<'_, HashMap<String, Stamp>> {
        self.sound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches a part, unless it is here. Returns the bytes fetched.
    fn fetch_part(&self, remote: &Remote, part: &Part<'_>) -> Result<u64> {
        let path = self.dir.join(part.sha256);
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
        let Some((mut file, meta)) = private_files::open(path)? else { return Ok(false) };
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
        // Renaming changes the ctime.
        match private_files::open(path) {
            Ok(Some((_, renamed))) if renamed.ino() == meta.ino() && renamed.len() == meta.len() => {
                self.sound().insert(part.sha256.to_owned(), Stamp::of(&renamed));
                Ok(())
            }
            Ok(_) => Ok(()), // Another reader was faster.
            Err(error) => Err(Error::file("read", path)(error)),
        }
    }

    /// Removes files left by readers, of at least this age, except these.
    pub fn clean(&self, used: &HashSet<PathBuf>, min_age: Duration) -> Result<()> {
        let entries = fs::read_dir(&self.dir).map_err(Error::file("list", &self.dir))?;
        let is_old = |meta: Metadata| {
            let age = meta.modified().map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
            age.is_ok_and(|age| age >= min_age)
        };
        for entry in entries {
            let entry = entry.map_err(Error::file("list", &self.dir))?;
            if is_readers(&entry.file_name())
                && !used.contains(&entry.path())
                && entry.metadata().is_ok_and(is_old)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::debug!(%error, file = %entry.path().display(), "cannot remove an obsolete file");
            }
        }
        Ok(())
    }
}

/// Whether a reader gives such a name to its kept or temporary files.
fn is_readers(name: &OsStr) -> bool {
    let is_blocks = |name: &str| {
        let unique = name.strip_prefix("blocks-").and_then(|rest| rest.strip_suffix(".cache"));
        unique.is_some_and(private_files::is_unique)
    };
    name.to_str().is_some_and(|name| is_sha256(name) || Temporary::is_name(name) || is_blocks(name))
}

/// Copies a part of an object to a file, reporting progress, and checks its hash.
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
    if hex(&digest.finalize()) == part.sha256 {
        Ok(())
    } else {
        let what = "its contents do not match the hash in its generation";
        Err(Error::damaged(remote.object(part.object), part.range.start, what))
    }
}

/// Refuses what does not fit the disk, before fetching any of it: until then sizes are only claims.
pub(crate) fn check_room(remote: &Remote, dir: &Path, mut sizes: impl Iterator<Item = u64>) -> Result<u64> {
    let sum = sizes.try_fold(0u64, u64::checked_add);
    let free = rustix::fs::statvfs(dir).map_err(|e| Error::file("inspect", dir)(e.into()))?;
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    match sum {
        Some(sum) if sum <= free => Ok(sum),
        sum => {
            let claimed = sum.map_or("more than 2^64".to_owned(), |sum| sum.to_string());
            let what = format!("{} claims to have {claimed} bytes; {free} are free", remote.url());
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
