//! All groups of runs, and which of them a lookup asks for a key.
//!
//! Level 0 may have runs of very many keyspaces. A lookup asks only the groups that are in its key's keyspace
//! and those of several keyspaces, such as the levels below.

use super::runs::RunGroup;
use crate::key::{HEADS_START, Space};
use std::collections::BTreeMap;
use std::ops::Deref;

/// All sorted runs in groups: newest first where they overlap, and those of a keyspace together.
pub struct RunGroups {
    groups: Box<[RunGroup]>,
    of_default: Numbers,
    /// Of the keyspaces that have groups of their own, with their numbers, sorted.
    of_keyspaces: Box<[(u32, Numbers)]>,
    /// Of all others.
    of_others: Numbers,
    all: Numbers,
}

/// The numbers of the groups that a lookup asks, in order.
type Numbers = Box<[u32]>;

impl RunGroups {
    pub(super) fn new(groups: Vec<RunGroup>) -> Self {
        let numbered = || (0..).zip(groups.iter().map(RunGroup::keyspace));
        let mut own: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
        let mut of_others = Vec::new();
        for (number, keyspace) in numbered() {
            match keyspace {
                Some(space) => own.entry(space.number()).or_default().push(number),
                None => of_others.push(number),
            }
        }
        let with_others = |mut numbers: Vec<u32>| -> Numbers {
            numbers.extend(&of_others);
            numbers.sort_unstable();
            numbers.into()
        };
        let of_default = with_others(own.remove(&None).unwrap_or_default());
        let of_keyspaces = own
            .into_iter()
            .filter_map(|(keyspace, numbers)| Some((keyspace?, with_others(numbers))))
            .collect();
        let all = numbered().map(|(number, _)| number).collect();
        RunGroups { groups: groups.into(), of_default, of_keyspaces, of_others: of_others.into(), all }
    }

    /// The groups from number `from` on that may have the key, with their numbers.
    #[inline(always)]
    pub fn of(&self, key: &[u8], from: usize) -> impl Iterator<Item = (usize, &RunGroup)> {
        let numbers = if key.starts_with(HEADS_START) { self.numbers_of(key) } else { &*self.of_default };
        self.numbered(numbers).skip_while(move |(number, _)| *number < from)
    }

    /// All groups that may have any of the keys, with their numbers.
    pub fn of_any<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k [u8]>,
    ) -> impl Iterator<Item = (usize, &RunGroup)> {
        let first = keys.next().unwrap_or_default();
        let same = !self.of_keyspaces.is_empty()
            && Space::of(first).is_some_and(|space| keys.all(|key| space.contains(key)));
        self.numbered(if same { self.numbers_of(first) } else { &self.all })
    }

    #[inline(never)]
    fn numbers_of(&self, key: &[u8]) -> &[u32] {
        match Space::of(key).map(Space::number) {
            Some(Some(keyspace)) => {
                match self.of_keyspaces.binary_search_by_key(&keyspace, |(keyspace, _)| *keyspace) {
                    Ok(at) => self.of_keyspaces.get(at).map_or(&*self.all, |(_, numbers)| numbers),
                    Err(_) => &self.of_others,
                }
            }
            Some(None) => &self.of_default,
            None => &self.all,
        }
    }

    #[inline(always)]
    fn numbered<'g>(&'g self, numbers: &'g [u32]) -> impl Iterator<Item = (usize, &'g RunGroup)> {
        numbers.iter().filter_map(|&number| Some((number as usize, self.groups.get(number as usize)?)))
    }
}

impl Deref for RunGroups {
    type Target = [RunGroup];

    #[inline(always)]
    fn deref(&self) -> &[RunGroup] {
        &self.groups
    }
}
