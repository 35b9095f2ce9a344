//! Removing old generations.

use crate::error::Result;
use crate::find;
use crate::generation::Generation;
use crate::remote::Remote;
use std::collections::HashSet;
use std::time::{Duration, SystemTime};

/// Folders of objects that generations name.
const FOLDERS: [&str; 3] = ["segment", "filter", "manifest"];

/// Removes generations older than `min_age` by the bucket's clock, but not the newest, and then the objects of that age that no remaining
/// generation names. Returns how many objects went.
pub(crate) fn collect(remote: &Remote, min_age: Duration) -> Result<u64> {
    let Some(newest) = find::newest(remote, None)? else { return Ok(0) };
    let limit = SystemTime::now().checked_sub(min_age).unwrap_or(SystemTime::UNIX_EPOCH);
    let is_old = |meta: &object_store::ObjectMeta| SystemTime::from(meta.last_modified) <= limit;
    let (mut removed, mut named) = (0, HashSet::new());
    for (name, meta) in remote.list("gen")? {
        let Some(number) = Generation::number_in(&name) else { continue };
        if number < newest.number && is_old(&meta) {
            remote.remove(&name)?;
            removed += 1;
        } else if let Some((generation, _)) = find::read(remote, number)? {
            named.extend(generation.objects().map(|object| object.object.clone()));
        }
    }
    for folder in FOLDERS {
        for (name, meta) in remote.list(folder)? {
            if !named.contains(&name) && is_old(&meta) {
                remote.remove(&name)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}
