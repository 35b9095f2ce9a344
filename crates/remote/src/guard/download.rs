//! The filters of a state as local files, under the hash of their contents. Several processes may share the directory.

use super::state::{FilterRef, State};
use crate::error::{Error, Result};
use crate::parallel;
use crate::remote::Remote;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Files that no state in use needs are removed at this age: another process may be about to open them.
const KEPT: Duration = Duration::from_secs(3600);
/// Tells the temporary files of this process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Fetches the filters that are not there, or damaged; those of `verified` are known to be sound. Returns the files, and the bytes
/// fetched.
pub fn fetch(
    remote: &Remote,
    dir: &Path,
    state: &State,
    verified: &HashSet<FilterRef>,
) -> Result<(BTreeMap<u64, Option<PathBuf>>, u64)> {
    fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
    let path = |filter: &FilterRef| dir.join(filter.file_name());
    let needed: HashSet<FilterRef> = state.filters.values().flatten().copied().collect();
    let missing = needed.iter().filter(|filter| !(verified.contains(filter) && path(filter).exists()));
    let missing: Vec<(FilterRef, PathBuf)> = missing.map(|filter| (*filter, path(filter))).collect();
    let bytes = AtomicU64::new(0);
    parallel::for_each(&missing, |(filter, path)| {
        bytes.fetch_add(fetch_one(remote, filter, path)?, Ordering::Relaxed);
        Ok(())
    })?;
    let bytes = bytes.into_inner();
    Ok((state.filters.iter().map(|(number, filter)| (*number, filter.as_ref().map(path))).collect(), bytes))
}

/// Returns the bytes fetched; 0 if the file is there.
fn fetch_one(remote: &Remote, filter: &FilterRef, path: &Path) -> Result<u64> {
    match fs::read(path) {
        Ok(bytes) if is_sound(filter, &bytes) => return Ok(0),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::file("read", path)(error)),
    }
    let name = filter.object();
    let object = || remote.object(&name);
    let found = remote.get_at_most(&name, filter.len)?.ok_or_else(|| Error::Expired { object: object() })?;
    if !is_sound(filter, &found.bytes) {
        return Err(Error::damaged(object(), 0, "its contents do not have the hash in its name"));
    }
    // Nobody else writes the temporary file, and whoever has an earlier one open keeps it.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let fresh = path.with_extension(format!("{}-{number}.new", std::process::id()));
    let written = fs::write(&fresh, &found.bytes).and_then(|()| fs::rename(&fresh, path));
    written.map_err(Error::file("write", &fresh))?;
    Ok(filter.len)
}

fn is_sound(filter: &FilterRef, bytes: &[u8]) -> bool {
    bytes.len() as u64 == filter.len && *Sha256::digest(bytes) == filter.sha256
}

/// Removes old files that the state does not need.
pub fn clean(dir: &Path, state: &State) {
    let needed: HashSet<String> = state.filters.values().flatten().map(FilterRef::file_name).collect();
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_ours = name.len() >= 64 && name.bytes().take(64).all(|byte| byte.is_ascii_hexdigit());
        let is_old = || {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= KEPT))
        };
        if is_ours
            && !needed.contains(&name)
            && is_old()
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(%error, file = %entry.path().display(), "cannot remove an old filter; will try again");
        }
    }
}
