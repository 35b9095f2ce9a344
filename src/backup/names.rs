//! Names in a backup repository. [`format`](super::format) lists them.

use super::format::Sha256;
use std::path::{Path, PathBuf};

/// Whose backups these are.
pub(super) const REPOSITORY: &str = "REPOSITORY";
/// The folder of the backups.
pub const BACKUPS: &str = "backups";
/// The folder of their files.
pub const FILES: &str = "files";

/// The name of a backup below the repository.
pub(super) fn backup_name(number: u64) -> String {
    format!("{BACKUPS}/{number:020}")
}

/// The number in a name of the folder of backups.
pub(super) fn backup_number(name: &str) -> Option<u64> {
    let is_plain = name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|number| is_plain && *number > 0)
}

/// The name of a file in its folder.
pub(super) fn hex(sha256: &Sha256) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    sha256.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Whether a name is one of a file's contents.
pub(super) fn is_file_name(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The path of a file of a repository, for messages and for directories.
pub(super) fn path_of(place: &Path, name: &str) -> PathBuf {
    name.split('/').fold(place.to_path_buf(), |path, part| path.join(part))
}
