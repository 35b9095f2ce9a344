//! Building: sort, solve line by line, bump what does not fit to the next level, again.

use super::equation::{Equation, next_level, place};
use super::layout::{Layout, Words, line_of_words};
use super::solve::System;
use super::{Isa, Levels, MAX_LEVELS, solve_on};
use crate::error::{Error, Result};
use crate::filter::Lines;
use crate::filter::lines::ask_for_huge_pages;

/// Keys that a bucket of the sort holds on average: a few levels of a comparison sort, within the first cache.
const BUCKET_KEYS: usize = 256;
/// Sixteen times as many made no difference at 10 million keys.
const MAX_BUCKETS: usize = 1 << 11;

/// The lines of all levels, and how many each level has.
pub(super) fn build<L: Layout>(isa: Isa, hashes: &[u64], keys_per_line: f64) -> Result<(Lines, Levels)> {
    let mut lines = Lines::default();
    let mut levels = Levels::default();
    let mut left = sorted(hashes.iter().copied(), hashes.len());
    for level in &mut levels {
        let count = (left.len() as f64 / keys_per_line).ceil().max(1.0);
        if count > f64::from(u32::MAX) {
            return Err(Error::InvalidArgument(format!("a parity filter of {} keys", left.len())));
        }
        *level = count as u32;
        if lines.is_empty() {
            // The levels below take a twentieth; a little more room than that, so that nothing moves.
            lines.reserve(*level as usize / 16 * 17 + MAX_LEVELS)?;
        }
        let bumped = build_level::<L>(isa, &left, *level, &mut lines);
        if bumped.is_empty() {
            break;
        }
        // What the last level bumps is answered with "maybe".
        left = sorted(bumped.iter().map(|&hash| next_level(hash)), bumped.len());
    }
    Ok((lines, levels))
}

/// Appends one level's lines; returns the hashes that it bumps.
fn build_level<L: Layout>(isa: Isa, sorted: &[u64], count: u32, lines: &mut Lines) -> Vec<u64> {
    let mut bumped = Vec::with_capacity(sorted.len() / 16);
    let mut system = System::new();
    let mut rest = sorted;
    for line in 0..count {
        let here = rest.iter().take_while(|&&hash| place::<L>(hash, count).0 == line).count();
        let (members, after) = rest.split_at(here);
        rest = after;
        let (words, kept) = build_line::<L>(isa, members, count, &mut system);
        bumped.extend_from_slice(&members[..members.len() - kept]);
        lines.push(line_of_words(&words));
    }
    bumped
}

/// One line of its members, sorted; and how many of them, counted from the end, live in it.
fn build_line<L: Layout>(isa: Isa, members: &[u64], count: u32, system: &mut System) -> (Words, usize) {
    system.clear();
    let mut taken = members.len();
    while taken > 0 && !system.is_full(L::ROWS) {
        taken -= 1;
        system.push(Equation::of::<L>(members[taken]));
    }
    let (lanes, solved) = solve_on::<L>(isa, system);
    let (bumped, kept) = members.split_at(members.len() - solved);
    // The first member that does not fit is bumped with all of its rank and below.
    let rank = |hash: u64| place::<L>(hash, count).1;
    let threshold = bumped.last().map_or(0, |&hash| rank(hash) + 1);
    let same_rank = kept.iter().take_while(|&&hash| rank(hash) < threshold).count();
    (L::assemble(&lanes, threshold), solved - same_rank)
}

/// All distinct hashes in ascending order: a scatter by the high bits, then a sort of each bucket.
fn sorted(hashes: impl Iterator<Item = u64> + Clone, len: usize) -> Vec<u64> {
    let buckets = (len / BUCKET_KEYS).next_power_of_two().clamp(2, MAX_BUCKETS);
    let bucket_of = |hash: u64| (hash >> (64 - buckets.trailing_zeros())) as usize;
    let mut ends = vec![0usize; buckets];
    hashes.clone().for_each(|hash| ends[bucket_of(hash)] += 1);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let mut sorted = vec![0; len];
    ask_for_huge_pages(&sorted);
    for hash in hashes {
        let end = &mut ends[bucket_of(hash)];
        sorted[*end] = hash;
        *end += 1;
    }
    let mut start = 0;
    for end in ends {
        sorted[start..end].sort_unstable();
        start = end;
    }
    sorted.dedup();
    sorted
}
