//! The files of a store on a real disk.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// All files of a directory with this suffix, in order.
pub fn files_with(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.to_str().unwrap().ends_with(ending)).collect();
    paths.sort();
    paths
}

/// A file's identity, time and contents: everything that a rewrite would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// The inode.
    pub inode: u64,
    modified: (i64, i64),
    digest: u32,
    len: u64,
}

/// The fingerprints of all files of a directory with this suffix. A file removed at this moment has none.
pub fn fingerprints(dir: &Path, ending: &str) -> BTreeMap<PathBuf, Fingerprint> {
    let one = |path: PathBuf| {
        let (meta, bytes) = match (fs::metadata(&path), fs::read(&path)) {
            (Err(error), _) | (_, Err(error)) if error.kind() == ErrorKind::NotFound => return None,
            (meta, bytes) => (meta.unwrap(), bytes.unwrap()),
        };
        let digest = crc32fast::hash(&bytes);
        let modified = (meta.mtime(), meta.mtime_nsec());
        Some((path, Fingerprint { inode: meta.ino(), modified, digest, len: meta.len() }))
    };
    files_with(dir, ending).into_iter().filter_map(one).collect()
}

/// Copies a store that nobody has open.
pub fn copy_store(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in files_with(from, "") {
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}
