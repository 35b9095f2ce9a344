//! Directory descriptors, which stay valid when a directory is moved (I13).

use super::irregular::{check_regular, irregular};
use crate::error::{Error, IoOp, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// Its path when it was opened. Paths that begin with it lead here.
    path: PathBuf,
    /// Where other paths lead; `None` for the process's own view.
    outside: Option<Arc<Directory>>,
}

impl Directory {
    /// Opens the directory `path`, which `outside` may resolve.
    pub fn open(outside: Option<&Arc<Directory>>, path: &Path) -> Result<Arc<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let fd = At::new(outside.map(Arc::as_ref), path).open(flags, Mode::empty());
        let fd = fd.map_err(|errno| Error::io(IoOp::Open, path, errno.into()))?;
        Ok(Arc::new(Directory { fd, path: path.to_path_buf(), outside: outside.cloned() }))
    }
}

/// A path as the kernel gets it: relative to a descriptor.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    dir: Option<&'a Directory>,
    rest: &'a Path,
}

impl<'a> At<'a> {
    /// Where `path` leads, from `dir` if it begins there.
    pub fn new(mut dir: Option<&'a Directory>, path: &'a Path) -> Self {
        while let Some(from) = dir {
            match path.strip_prefix(&from.path) {
                Ok(rest) if rest.as_os_str().is_empty() => return At { dir, rest: Path::new(".") },
                Ok(rest) => return At { dir, rest },
                Err(_) => dir = from.outside.as_deref(),
            }
        }
        At { dir, rest: path }
    }

    fn fd(&self) -> BorrowedFd<'a> {
        self.dir.map_or(CWD, |dir| dir.fd.as_fd())
    }

    pub fn open(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        retry_on_intr(|| rustix::fs::openat(self.fd(), self.rest, flags | OFlags::CLOEXEC, mode))
    }

    /// Opens an existing regular file, and nothing else: reading a pipe or a device could wait forever.
    /// `path` is for messages.
    pub fn open_regular(&self, flags: OFlags, path: &Path) -> Result<File> {
        match self.open(flags | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()) {
            Ok(fd) => {
                let file = File::from(fd);
                check_regular(&file, path)?;
                Ok(file)
            }
            // Some kinds cannot even be opened this way.
            Err(errno @ (Errno::NXIO | Errno::LOOP | Errno::ISDIR)) => Err(self
                .kind()
                .and_then(|kind| irregular(kind, path))
                .unwrap_or_else(|| Error::io(IoOp::Open, path, errno.into()))),
            Err(errno) => Err(Error::io(IoOp::Open, path, errno.into())),
        }
    }

    /// The kind of file that is there, if any.
    fn kind(&self) -> Option<FileType> {
        let stat = self.stat(AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(stat.st_mode))
    }

    pub fn stat(&self, flags: AtFlags) -> Result<Stat, Errno> {
        retry_on_intr(|| rustix::fs::statat(self.fd(), self.rest, flags))
    }

    /// Creates a directory. `mode` is exact; without it, the process's mask applies.
    pub fn create_dir(&self, mode: Option<u32>) -> Result<(), Errno> {
        let bits = Mode::from_raw_mode(mode.unwrap_or(0o777) as RawMode);
        match rustix::fs::mkdirat(self.fd(), self.rest, bits) {
            Ok(()) if mode.is_some() => rustix::fs::chmodat(self.fd(), self.rest, bits, AtFlags::empty()),
            Err(Errno::EXIST) if self.is_dir() => Ok(()),
            outcome => outcome,
        }
    }

    fn is_dir(&self) -> bool {
        let stat = self.stat(AtFlags::empty());
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// The names in a directory that are UTF-8.
    pub fn list(&self) -> Result<Vec<String>, Errno> {
        let fd = self.open(OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(fd)? {
            match entry?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    pub fn sync_dir(&self) -> Result<(), Errno> {
        match self.dir.filter(|_| self.rest == Path::new(".")) {
            Some(dir) => retry_on_intr(|| rustix::fs::fsync(&dir.fd)),
            None => {
                let fd = self.open(OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
                retry_on_intr(|| rustix::fs::fsync(&fd))
            }
        }
    }

    pub fn rename(&self, to: At<'_>) -> Result<(), Errno> {
        rustix::fs::renameat(self.fd(), self.rest, to.fd(), to.rest)
    }

    pub fn hard_link(&self, to: At<'_>) -> Result<(), Errno> {
        rustix::fs::linkat(self.fd(), self.rest, to.fd(), to.rest, AtFlags::empty())
    }

    pub fn remove(&self, flags: AtFlags) -> Result<(), Errno> {
        rustix::fs::unlinkat(self.fd(), self.rest, flags)
    }

    /// Creates a file for appending, with `exact` permission bits, or `default` minus the process's mask.
    pub fn create(&self, exact: Option<u32>, default: u32, flags: OFlags) -> io::Result<File> {
        let bits = Mode::from_raw_mode(exact.unwrap_or(default) as RawMode);
        let file = File::from(self.open(flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, bits)?);
        if exact.is_some()
            && let Err(errno) = rustix::fs::fchmod(&file, bits)
        {
            let _ = self.remove(AtFlags::empty()); // It was created here.
            return Err(errno.into());
        }
        Ok(file)
    }
}
