//! The inputs of a merge in the order of their keys, and the fronts that decide most comparisons.
//!
//! A sorted list rather than a heap: a merge has a few inputs, an input that advances mostly moves by a place
//! or two, and the next key after the first one's is always known.

use super::source::MergeSource;
use crate::direction::Direction;
use std::cmp::Ordering;

/// An input and the front of its key, reversed where the walk is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub front: u128,
    pub input: usize,
}

/// Places that an input moves one by one. To move further, it searches.
const LINEAR_PLACES: usize = 4;

impl Place {
    #[inline]
    pub fn of(sources: &[MergeSource], input: usize, direction: Direction) -> Self {
        let front = sources.get(input).map_or(0, MergeSource::front);
        Place { front: ordered(front, direction), input }
    }

    #[inline]
    pub fn cmp_key(&self, other: &Place, sources: &[MergeSource], direction: Direction) -> Ordering {
        self.front.cmp(&other.front).then_with(|| cmp_same_front(self, other, sources, direction))
    }

    /// Whether it comes first: by its key, then unopened, then newer.
    #[inline]
    pub fn precedes(&self, other: &Place, sources: &[MergeSource], direction: Direction) -> bool {
        if self.front != other.front {
            return self.front < other.front;
        }
        cmp_same_front(self, other, sources, direction).then_with(|| by_age(self, other, sources)).is_lt()
    }
}

/// The front of a key as an integer that grows along the walk.
#[inline]
pub(super) fn ordered(front: u128, direction: Direction) -> u128 {
    if direction == Direction::Reverse { !front } else { front }
}

/// Compares the keys of two inputs whose fronts are the same.
#[inline]
fn cmp_same_front(a: &Place, b: &Place, sources: &[MergeSource], direction: Direction) -> Ordering {
    match (sources.get(a.input), sources.get(b.input)) {
        (Some(a), Some(b)) => direction.order(a.key().cmp_same_front(b.key())),
        _ => Ordering::Equal,
    }
}

fn by_age(a: &Place, b: &Place, sources: &[MergeSource]) -> Ordering {
    match (sources.get(a.input), sources.get(b.input)) {
        (Some(a), Some(b)) => a.is_open().cmp(&b.is_open()).then_with(|| b.seq().cmp(&a.seq())),
        _ => Ordering::Equal,
    }
}

/// Moves the first of `places` back to where it belongs among the others, which are in order.
#[inline]
pub(super) fn sink(places: &mut [Place], sources: &[MergeSource], direction: Direction) {
    let Some((first, others)) = places.split_first() else { return };
    let precedes = |other: &Place| other.precedes(first, sources, direction);
    let mut before = others.iter().take(LINEAR_PLACES).take_while(|other| precedes(other)).count();
    if before == LINEAR_PLACES {
        before += others.get(before..).map_or(0, |others| others.partition_point(precedes));
    }
    if let Some(moved) = places.get_mut(..=before)
        && before > 0
    {
        moved.rotate_left(1);
    }
}
