//! Files and directories private to this user, to which no symbolic link leads.
//!
//! A private bucket's contents stay private here: directories have mode 0700, files 0600. Files are created
//! exclusively, or under a unique name that is then renamed, so no write follows somebody else's link.

use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The suffix of a temporary name, used until the file is complete.
const TEMPORARY: &str = ".tmp";
/// Names to try for a temporary file: an earlier process with this id may have left some.
const NAMES_MAX: usize = 1000;

/// A directory below `root` that belongs to this user, created if missing.
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
        let what = "it is not a directory of this user; remove it, or choose another cache directory";
        return Err(Error::file("use", dir)(io::Error::new(ErrorKind::PermissionDenied, what)));
    }
    if found.mode() & 0o777 != DIR_MODE {
        fs::set_permissions(&dir, Permissions::from_mode(DIR_MODE)).map_err(Error::file("protect", &dir))?;
    }
    Ok(dir)
}

/// Opens a regular file for reading; `None` if it does not exist.
pub(crate) fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    // Opening a FIFO would block.
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
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// A whole file of at most `max` bytes; `None` if it does not exist.
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

/// Opens a lock file, created if missing.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(FILE_MODE))?.into())
}

/// A new file with a unique name: `name` gets a number to put into it.
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

    /// Gives the file its name, but does not sync the directory.
    pub fn keep(mut self, to: &Path) -> io::Result<()> {
        self.file.sync_all()?; // A file emptied by a crash would look whole.
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

/// Whether [`create_unique`] puts such a number into a name.
pub(crate) fn is_unique(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-').is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// The temporary name in [`replace`].
pub(crate) fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY);
    name.into()
}

/// Replaces a small file atomically and durably. One caller at a time.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = temporary_of(path);
    // Left by a crash, or a link: the link itself is removed, not its target.
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
