//! Removing old generations.

use crate::error::Result;
use crate::find;
use crate::generation::{FOLDERS, Generation};
use crate::remote::Remote;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, SystemTime};

/// Removes generations that were replaced at least `min_age` before the newest one was published, and then the objects of that age that no
/// remaining generation names. All times are the bucket's. Returns how many objects went.
///
/// Generations go from the oldest on, and none goes before an older one: whoever finds its own generation knows that none after it is gone.
pub(crate) fn collect(remote: &Remote, min_age: Duration) -> Result<u64> {
    let Some(newest) = find::newest(remote, None)? else { return Ok(0) };
    // A directory is listed in any order.
    let generations: BTreeMap<u64, _> = remote
        .list("gen")?
        .into_iter()
        .filter_map(|(name, meta)| {
            Some((Generation::number_in(&name)?, SystemTime::from(meta.last_modified)))
        })
        .collect();
    let Some(now) = generations.get(&newest.number) else { return Ok(0) };
    let is_old = |time: SystemTime| now.duration_since(time).is_ok_and(|age| age >= min_age);
    let is_replaced = |number: u64| {
        let next = generations.range(number..).nth(1);
        number < newest.number && next.is_some_and(|(_, replaced)| is_old(*replaced))
    };
    let (mut removed, mut named) = (0, HashSet::new());
    let mut numbers = generations.keys().copied().peekable();
    while let Some(number) = numbers.next_if(|number| is_replaced(*number)) {
        remote.remove(&Generation::name_of(number))?;
        removed += 1;
    }
    for number in numbers {
        if let Some((generation, _)) = find::read(remote, number)? {
            named.extend(generation.objects().map(|object| object.object.clone()));
        }
    }
    for folder in FOLDERS {
        for (name, meta) in remote.list(folder)? {
            if !named.contains(&name) && is_old(meta.last_modified.into()) {
                remote.remove(&name)?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}
