//! The inputs of a merge in the order of their keys, and the fronts that decide most comparisons.
//!
//! A sorted list rather than a heap: a merge has a few inputs, an input that advances mostly moves by a place
//! or two, and the next key after the first one's is always known.

use super::source::MergeSource;
use crate::direction::Direction;
use std::cmp::Ordering;

/// An input, and the front of its key, reversed where the walk is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub front: u128,
    pub input: usize,
    /// It is an older entry of the key of the place before.
    pub is_older: bool,
}

impl Place {
    #[inline]
    pub fn of(sources: &[MergeSource], input: usize, direction: Direction) -> Self {
        let front = sources.get(input).map_or(0, MergeSource::front);
        Place { front: ordered(front, direction), input, is_older: false }
    }
}

/// The front of a key as an integer that grows along the walk.
#[inline]
pub(super) fn ordered(front: u128, direction: Direction) -> u128 {
    if direction == Direction::Reverse { !front } else { front }
}

/// Moves the first of `places` back to where it belongs among the others, which are in order: by key, then
/// unopened first, then newest first.
#[inline]
pub(super) fn sink(places: &mut [Place], sources: &[MergeSource], direction: Direction) {
    let Some((first, others)) = places.split_first_mut() else { return };
    first.is_older = false;
    let (mut moving, mut place) = (*first, first);
    for next in others {
        let is_same = next.front == moving.front;
        if next.front > moving.front || is_same && !precedes(next, &mut moving, sources, direction) {
            break;
        }
        *place = *next;
        place = next;
    }
    *place = moving;
}

/// Whether `next` comes before `moving`, whose front is the same. If they have the same key, marks the older
/// one.
#[inline(never)]
fn precedes(next: &mut Place, moving: &mut Place, sources: &[MergeSource], direction: Direction) -> bool {
    let (Some(a), Some(b)) = (sources.get(next.input), sources.get(moving.input)) else { return false };
    match direction.order(a.key().cmp_same_front(b.key())) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => {
            let are_open = a.is_open() && b.is_open();
            let precedes = if are_open { a.seq() > b.seq() } else { b.is_open() };
            if precedes {
                moving.is_older = are_open
            } else {
                next.is_older = are_open
            }
            precedes
        }
    }
}
