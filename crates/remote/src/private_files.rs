//! Files and directories of this user alone, into which no symbolic link leads.
//!
//! What a private bucket holds is no less private here: directories have the mode 0700, files 0600. A file is
//! created where there is none, or under a name of its own that is then renamed, so no write goes where
//! somebody else's link points.

use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The end of the name of a file that is renamed once it is complete.
const TEMPORARY: &str = ".tmp";
/// Names that are tried for a temporary file: another process of this number may have left some.
const NAMES_MAX: usize = 1000;

/// A directory below `root` that belongs to this user, made if it is missing.
pub(crate) fn dir(root: &Path, name: &str) -> Result<PathBuf> {
    let builder = |recursive| {
        let mut builder = DirBuilder::new();
        builder.mode(DIR_MODE).recursive(recursive);
        builder
    };
    builder(true).create(root).map_err(Error::file("create", root))?;
    let dir = root.join(name);
    match builder(false).create(&dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::file("create", dir)(error));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&dir).map_err(Error::file("inspect", &dir))?;
    let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if !is_own {
        let what = "it is no directory of this user; remove it, or choose another cache directory";
        return Err(Error::file("use", dir)(io::Error::new(ErrorKind::PermissionDenied, what)));
    }
    if found.mode() & 0o777 != DIR_MODE {
        fs::set_permissions(&dir, Permissions::from_mode(DIR_MODE)).map_err(Error::file("protect", &dir))?;
    }
    Ok(dir)
}

/// Opens a regular file to read it; `None` if there is none.
pub(crate) fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    // A FIFO would block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata()?;
    if meta.is_file() {
        Ok(Some((file, meta)))
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
    }
}

/// A whole file of at most `max` bytes; `None` if there is none.
pub(crate) fn read_at_most(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let Some((file, meta)) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has {} bytes, more than {max}", meta.len())))
    } else {
        Ok(Some(bytes))
    }
}

/// Opens a file that processes lock, made if it is missing.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(FILE_MODE))?.into())
}

/// A new file under a name that no file has: `name` gets a number that tells it apart.
pub(crate) fn create_unique(dir: &Path, name: impl Fn(&str) -> String) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut outcome = Err(ErrorKind::AlreadyExists.into());
    for _ in 0..NAMES_MAX {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(name(&format!("{}-{number}", std::process::id())));
        let new = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(&path);
        outcome = new.map(|file| (file, path));
        if !outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
            break;
        }
    }
    outcome
}

/// A file that is removed unless it is [kept](Self::keep).
pub(crate) struct Temporary {
    pub file: File,
    path: Option<PathBuf>,
}

impl Temporary {
    pub fn create(dir: &Path) -> Result<Self> {
        let created = create_unique(dir, |unique| format!("{unique}{TEMPORARY}"));
        let (file, path) = created.map_err(Error::file("create a file in", dir))?;
        Ok(Temporary { file, path: Some(path) })
    }

    /// Whether [`create`](Self::create) gives such names.
    pub fn is_name(name: &str) -> bool {
        name.strip_suffix(TEMPORARY).is_some_and(is_unique)
    }

    /// Gives the file its name, durably but for the directory.
    pub fn keep(mut self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?; // A file that a crash has emptied would look whole.
        if let Some(path) = &self.path {
            fs::rename(path, to)?;
        }
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            _ = fs::remove_file(path);
        }
    }
}

/// Whether [`create_unique`] makes such a part of a name.
pub(crate) fn is_unique(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-').is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// The name that [`replace`] first gives a file.
pub(crate) fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY);
    name.into()
}

/// Replaces a small file atomically and durably. Nobody else does so at the same time.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = temporary_of(path);
    // What a crash has left, or a link: it is removed, and not what it leads to.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}
