//! A Unix socket with a name in the file system.

use crate::context::Failure;
use rustix::fs::{Mode, RawMode};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Removed on drop, if it is still the same.
pub struct UnixSocket {
    pub path: PathBuf,
    inode: u64,
}

impl UnixSocket {
    /// Listens there. A socket that is left over from a server that was killed is replaced: nobody listens on
    /// it.
    pub fn bind(path: &Path, mode: u32) -> Result<(UnixListener, Self), Failure> {
        let fails = |e| Failure::file("listen on", path, e);
        // Whoever connects before the permissions are right would be served: they are right from the start.
        let before = rustix::process::umask(Mode::from_raw_mode((!mode & 0o777) as RawMode));
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_over(path) => {
                std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
            }
            other => other,
        };
        rustix::process::umask(before);
        let listener = listener.map_err(fails)?;
        let inode = std::fs::symlink_metadata(path).map_err(fails)?.ino();
        Ok((listener, UnixSocket { path: path.to_path_buf(), inode }))
    }
}

fn is_left_over(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_mine = std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if is_mine && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}
