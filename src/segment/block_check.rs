//! Checks of data blocks, made once, before their rows are read.

use super::block_layout::{BlockHeader, Layout};
use super::format::{Location, Parsed};
use crate::codec::uint_at;
use crate::error::Result;
use crate::key::MAX_STORED_KEY_BYTES;

/// Checks every bound in a payload once, so that reading its rows cannot fail.
pub fn check(payload: &[u8]) -> Parsed<()> {
    let header = BlockHeader::decode(payload).ok_or("the data block is shorter than its header")?;
    if header.count == 0 || header.count as usize > payload.len() {
        return Err("the data block has an impossible count");
    }
    if header.key_width > 4 || header.value_width > 4 || header.seq_width > 8 {
        return Err("the data block has an impossible width");
    }
    let layout = Layout::new(header);
    if layout.end != payload.len() {
        return Err("the areas of the data block do not fill it");
    }
    let key_max = match header.key_width {
        0 => header.keys as usize,
        _ => longest(&payload[layout.key_ends..layout.value_ends], header.key_width, header.keys)?,
    };
    if header.value_width > 0 {
        longest(&payload[layout.value_ends..layout.seqs], header.value_width, header.values)?;
    }
    if header.prefix as usize + key_max > MAX_STORED_KEY_BYTES {
        return Err("a key exceeds the size limit");
    }
    Ok(())
}

/// Fails if only a newer version knows the kinds of entries of a data block.
pub(super) fn check_kinds(location: Location<'_>, payload: &[u8]) -> Result<()> {
    match BlockHeader::decode(payload).and_then(|header| header.newer_kinds()) {
        Some(kinds) => Err(location.unknown_code(format!("entries of kinds {kinds}"))),
        None => Ok(()),
    }
}

/// The longest of consecutive parts. Their `ends`, of `width` bytes each, must not decrease, and the last one
/// must be `total`.
fn longest(ends: &[u8], width: u8, total: u32) -> Parsed<usize> {
    let width = usize::from(width);
    let (mut longest, mut start) = (0, 0);
    for at in (0..ends.len()).step_by(width) {
        let end = uint_at(ends, at, width) as usize;
        let len = end.checked_sub(start).ok_or("the ends in a data block are out of order")?;
        longest = longest.max(len);
        start = end;
    }
    if start == total as usize {
        Ok(longest)
    } else {
        Err("the last end in a data block is not the end of its area")
    }
}
