//! Non-regular files in place of a file: opening a pipe waits for its other end, and devices can do anything.

use crate::error::{Error, IoOp, Result};
use rustix::fs::FileType;
use std::fs::File;
use std::path::Path;

/// Fails unless an open file is a regular one. `path` is for messages.
pub fn check_regular(file: &File, path: &Path) -> Result<()> {
    let stat = rustix::fs::fstat(file).map_err(|errno| Error::io(IoOp::Inspect, path, errno.into()))?;
    irregular(FileType::from_raw_mode(stat.st_mode), path).map_or(Ok(()), Err)
}

/// The error for this kind of file; `None` for a regular one.
pub fn irregular(kind: FileType, path: &Path) -> Option<Error> {
    let kind = match kind {
        FileType::RegularFile => return None,
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe (FIFO)",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "of an unknown kind",
    };
    Some(Error::corruption(path, 0, format!("it is {kind}, not a regular file: move it away")))
}
