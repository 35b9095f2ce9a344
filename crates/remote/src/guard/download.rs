//! The filters of a state as local files, under the hash of their contents. Several processes may share the directory.

use super::state::{FilterRef, State};
use crate::error::Result;
use crate::kept::{Kept, Part, check_room};
use crate::parallel;
use crate::remote::Remote;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Files that no state in use needs are removed at this age: another process may be about to open them.
const KEPT: Duration = Duration::from_secs(3600);

/// Fetches the filters that are not there, or damaged. Returns the files, and the bytes fetched.
pub fn fetch(
    remote: &Remote,
    dir: &Path,
    kept: &Kept,
    state: &State,
) -> Result<(BTreeMap<u64, Option<PathBuf>>, u64)> {
    let path = |filter: &FilterRef| kept.path(&filter.file_name());
    let needed: HashSet<FilterRef> = state.filters.values().flatten().copied().collect();
    let missing = needed.iter().filter(|filter| !path(filter).exists());
    check_room(remote, dir, missing.map(|filter| filter.len))?;
    let needed: Vec<FilterRef> = needed.into_iter().collect();
    let bytes = AtomicU64::new(0);
    parallel::for_each(&needed, |filter| {
        let (object, sha256) = (filter.object(), filter.file_name());
        let part = Part { object: &object, range: 0..filter.len, sha256: &sha256 };
        bytes.fetch_add(kept.fetch(remote, &part)?, Ordering::Relaxed);
        Ok(())
    })?;
    let bytes = bytes.into_inner();
    Ok((state.filters.iter().map(|(number, filter)| (*number, filter.as_ref().map(path))).collect(), bytes))
}

/// Removes old files that the state does not need.
pub fn clean(dir: &Path, state: &State) {
    let needed: HashSet<String> = state.filters.values().flatten().map(FilterRef::file_name).collect();
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let is_unused = Kept::is_unused(&entry.file_name(), &needed);
        let is_old = || {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= KEPT))
        };
        if is_unused
            && is_old()
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(%error, file = %entry.path().display(), "cannot remove an old filter; will try again");
        }
    }
}
