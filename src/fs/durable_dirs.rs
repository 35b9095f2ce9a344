//! Durable creation of directories.

use super::traits::Fs;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::Path;

/// The parent directory of `path`; `.` for a bare name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a directory and its missing ancestors. All their names are durable when this returns.
///
/// Also syncs the parents of existing directories, because an earlier process may have created those and been
/// killed before syncing. Skips such a sync if permission or file system support is lacking.
///
/// # Errors
/// [`Error::Io`]. Directories created before the error remain.
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
