//! Directories whose names survive a power cut.

use super::seam::Fs;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// The directory that holds the name `path`.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a directory and its missing ancestors. When this returns, all of their names are durable.
///
/// The parents of directories that exist already are synced too: an earlier process may have made them and been killed before it
/// got that far. One that cannot be synced for want of permission, or on a file system that has no such thing, is left alone.
///
/// # Errors
/// [`Error::Io`]; directories made by then stay.
pub fn create_dir_durably(fs: &dyn Fs, path: &Path) -> Result<()> {
    let mut dirs: Vec<&Path> = path.ancestors().filter(|dir| !dir.as_os_str().is_empty()).collect();
    dirs.reverse();
    for dir in dirs {
        let existed = fs.file_len(dir)?.is_some();
        if !existed {
            fs.create_dir(dir)?;
        }
        match fs.sync_dir(parent_of(dir)) {
            Err(Error::Io { source, .. }) if existed && cannot_be_synced(source.kind()) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

fn cannot_be_synced(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported)
}
