//! Finding the newest generation, without listing the bucket.

use crate::error::{Error, Result};
use crate::generation::{Generation, LATEST};
use crate::remote::Remote;
use std::time::SystemTime;

/// A generation, and when it was written by the bucket's clock; `None` if there is none of this number.
pub(crate) fn read(remote: &Remote, number: u64) -> Result<Option<(Generation, SystemTime)>> {
    let name = Generation::name_of(number);
    let Some(found) = remote.get(&name)? else { return Ok(None) };
    let generation = Generation::decode(&found.bytes, &remote.object(&name), number)?;
    Ok(Some((generation, found.meta.last_modified.into())))
}

/// The newest generation; `None` if nothing was published. Begins at `from` if that was read already, and otherwise where the hint says. The
/// bucket is listed only if that leads nowhere.
pub(crate) fn newest(remote: &Remote, from: Option<Generation>) -> Result<Option<Generation>> {
    let mut found = from;
    if found.is_none()
        && let Some(hint) = remote.get(LATEST)?
    {
        let text = std::str::from_utf8(&hint.bytes).ok();
        let number: u64 = text.and_then(|text| text.parse().ok()).ok_or_else(|| {
            Error::damaged(
                remote.object(LATEST),
                0,
                "it is no number: remove it, and readers will do without",
            )
        })?;
        found = read(remote, number)?.map(|(generation, _)| generation);
    }
    if found.is_none() {
        let numbers = remote.list("gen")?.into_iter().filter_map(|(name, _)| Generation::number_in(&name));
        let Some(number) = numbers.max() else { return Ok(None) };
        found = read(remote, number)?.map(|(generation, _)| generation);
    }
    while let Some(generation) = &found {
        match read(remote, generation.number.saturating_add(1))? {
            None => break,
            Some((next, _)) => found = Some(next),
        }
    }
    Ok(found)
}
