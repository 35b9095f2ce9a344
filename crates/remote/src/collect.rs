//! Removing old generations.

use crate::error::Result;
use crate::find_generation::Generations;
use crate::generation::{FOLDERS, Generation};
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

/// Removes generations that were replaced at least `min_age` before the `newest` one was published, and then
/// objects of that age that no remaining generation names. All times are the bucket's. Returns how many
/// objects were removed.
///
/// Removes generations from oldest to newest, so whoever finds its own generation knows that all later ones
/// exist. Reads the remaining generations, removes the old ones, and only then removes objects: generations
/// that survive an interrupted collection still have all their objects.
pub(crate) fn collect(generations: &Generations, newest: u64, min_age: Duration) -> Result<u64> {
    let remote = &generations.remote;
    // Directories are listed in any order.
    let written: BTreeMap<u64, SystemTime> = remote
        .list("gen")?
        .into_iter()
        .filter_map(|(name, meta)| Some((Generation::number_in(&name)?, meta.last_modified.into())))
        .collect();
    let Some(now) = written.get(&newest) else { return Ok(0) };
    let is_old = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age >= min_age);
    let is_replaced = |number: &u64| {
        let next = written.range(*number..).nth(1);
        *number < newest && next.is_some_and(|(_, replaced)| is_old(*replaced))
    };
    let mut names: Vec<_> =
        written.keys().take_while(|number| is_replaced(number)).copied().map(Generation::name_of).collect();
    let mut named = HashSet::new();
    for number in written.keys().skip(names.len()) {
        if let Some(found) = generations.read(*number)? {
            named.extend(found.generation.objects().map(|object| object.object.clone()));
        }
    }
    for folder in FOLDERS {
        let objects = remote.list(folder)?.into_iter();
        names.extend(
            objects
                .filter(|(name, meta)| !named.contains(name) && is_old(meta.last_modified.into()))
                .map(|(name, _)| name),
        );
    }
    names.iter().try_for_each(|name| remote.remove(name))?;
    Ok(names.len() as u64)
}
