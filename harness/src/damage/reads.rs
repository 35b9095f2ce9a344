//! Reads of a damaged store: each answer is right, or an error that says where the damage is.

use super::store::{Kind, Store};
use super::wound::Wounds;
use crate::support::{Contents, Rng};
use sidebloom::filter::Verdict;
use sidebloom::{Db, Result, Skipped, Value};
use std::collections::BTreeSet;
use std::ops::{RangeBounds, RangeInclusive};

/// An open store, and what is known of it.
pub struct Reads<'a> {
    pub db: &'a Db,
    pub store: &'a Store,
    pub wounds: &'a Wounds<'a>,
    /// The right answers.
    pub expected: &'a Contents,
    /// Whether errors are allowed.
    pub may_fail: bool,
}

fn shown(key: &[u8]) -> String {
    format!("\"{}\"", key.escape_ascii())
}

impl Reads<'_> {
    /// `None` for an error that is allowed.
    fn outcome<T>(&self, outcome: Result<T>, what: impl Fn() -> String) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) if self.may_fail => {
                self.wounds.check(&error);
                None
            }
            Err(error) => panic!("{} failed, though no error is allowed: {error}", what()),
        }
    }

    fn same(&self, key: &[u8], found: Option<&[u8]>, how: &str) {
        let right = self.expected.get(key).map(Vec::as_slice);
        assert!(
            found == right,
            "{how} of {} gave {:?}, but {:?} is right",
            shown(key),
            found.map(<[u8]>::escape_ascii).map(|value| value.to_string()),
            right.map(<[u8]>::escape_ascii).map(|value| value.to_string())
        );
    }

    /// Gets one key in each way. Returns whether there was an error.
    pub fn get(&self, key: &[u8]) -> bool {
        let verdict = self.db.may_contain(key);
        let is_denied = verdict == Verdict::Absent && self.expected.contains_key(key);
        assert!(!is_denied, "the filters deny {}, which the store has (I1)", shown(key));
        match self.outcome(self.db.get(key), || format!("get of {}", shown(key))) {
            Some(found) => {
                self.same(key, found.as_deref(), "get");
                false
            }
            None => true,
        }
    }

    pub fn multi_get(&self, keys: &[&[u8]]) -> bool {
        let Some(found) = self.outcome(self.db.multi_get(keys), || "multi_get".into()) else { return true };
        assert_eq!(found.len(), keys.len(), "answers of multi_get");
        keys.iter().zip(&found).for_each(|(key, found)| self.same(key, found.as_deref(), "multi_get"));
        false
    }

    /// Iterates over a range, or over everything.
    pub fn walk(&self, range: Option<RangeInclusive<Vec<u8>>>, backwards: bool) -> bool {
        let (mut right, walk): (Vec<_>, _) = match range {
            Some(range) => (self.expected.range(range.clone()).collect(), self.db.range(range)),
            None => (self.expected.iter().collect(), self.db.iter()),
        };
        if backwards {
            right.reverse();
            self.steps(walk.rev(), &right, "backwards")
        } else {
            self.steps(walk, &right, "forwards")
        }
    }

    fn steps(
        &self,
        mut walk: impl Iterator<Item = Result<(Vec<u8>, Value)>>,
        right: &[(&Vec<u8>, &Vec<u8>)],
        way: &str,
    ) -> bool {
        let mut right = right.iter();
        while let Some(step) = walk.next() {
            let Some((key, value)) = self.outcome(step, || format!("a walk {way}")) else {
                assert!(walk.next().is_none(), "a walk {way} goes on after its error");
                return true;
            };
            let Some((due, row)) = right.next() else {
                panic!("a walk {way} has {}, which the store lacks", shown(&key))
            };
            assert!(key == **due, "a walk {way} has {} where {} is due", shown(&key), shown(due));
            assert!(*value == ***row, "a walk {way} has a wrong value of {}", shown(&key));
        }
        if let Some((due, _)) = right.next() {
            panic!("a walk {way} ended before {} without an error", shown(due));
        }
        false
    }

    /// Iterates over everything, skipping damaged segments: shown rows are right, missing ones are named.
    pub fn skip(&self, backwards: bool) {
        let skipped = Skipped::new();
        let walk = self.db.iter().skip_damaged(&skipped);
        let rows: Result<Vec<_>> = if backwards { walk.rev().collect() } else { walk.collect() };
        let rows = rows.unwrap_or_else(|error| panic!("a walk that skips damage failed: {error}"));
        let is_sorted = rows.is_sorted_by(|a, b| if backwards { a.0 > b.0 } else { a.0 < b.0 });
        assert!(is_sorted, "a walk that skips damage is out of order");
        rows.iter().for_each(|(key, value)| self.same(key, Some(value), "a walk that skips damage"));
        let (found, lost): (BTreeSet<_>, _) = (rows.into_iter().map(|row| row.0).collect(), skipped.keys());
        for key in self.expected.keys().filter(|key| !found.contains(*key)) {
            let is_named = lost.iter().any(|lost| lost.keys.contains(key));
            assert!(is_named, "a walk that skips damage lacks {}, and does not say so", shown(key));
        }
        assert!(lost.is_empty() || self.may_fail, "nothing is damaged: {lost:?}");
        lost.iter().for_each(|lost| self.wounds.check(&lost.error));
    }

    /// Reads what the damage may affect, and a sample of the rest. Returns whether there was an error.
    pub fn around(&self, rng: &mut Rng) -> bool {
        let mut failed = false;
        let (mut hull, mut keys) = (None::<RangeInclusive<Vec<u8>>>, Vec::new());
        for wound in &self.wounds.all {
            if let Some((smallest, largest)) = self.store.manifest.segments.get(&wound.victim.id) {
                hull = Some(match hull {
                    Some(hull) => hull.start().min(smallest).clone()..=hull.end().max(largest).clone(),
                    None => smallest.clone()..=largest.clone(),
                });
                keys.extend(self.sample(rng, smallest, largest, 3));
            }
            if let Some(layout) = &wound.victim.layout {
                let at = wound.changed.start.min(wound.victim.target.bytes.len() - 1);
                let part = layout.part_at(at);
                keys.extend(self.sample(rng, part.after.as_deref().unwrap_or_default(), &part.up_to, 4));
            }
        }
        let universe = &self.store.universe;
        if universe.is_empty() {
            return self.walk(None, false);
        }
        keys.push(rng.pick(universe).as_slice());
        let is_whole = hull.is_none() || rng.percent(8);
        let (walk, backwards) = (if is_whole { None } else { hull }, rng.percent(30));
        if rng.percent(50) {
            failed |= self.walk(walk, backwards);
            failed |= keys.iter().fold(false, |failed, key| failed | self.get(key));
        } else {
            failed |= keys.iter().fold(false, |failed, key| failed | self.get(key));
            failed |= self.walk(walk, backwards);
        }
        if rng.percent(15) {
            failed |= self.multi_get(&keys);
        }
        if self.wounds.kind == Kind::Segment && rng.percent(20) {
            self.skip(rng.percent(50));
        }
        failed
    }

    /// Some keys of the universe between two keys.
    fn sample<'s>(&'s self, rng: &mut Rng, from: &[u8], to: &[u8], n: usize) -> Vec<&'s [u8]> {
        let universe = &self.store.universe;
        let first = universe.partition_point(|key| key.as_slice() < from);
        let last = universe.partition_point(|key| key.as_slice() <= to).max(first);
        match &universe[first..last] {
            [] => Vec::new(),
            within => (0..n).map(|_| rng.pick(within).as_slice()).collect(),
        }
    }

    /// Every lookup that a store supports.
    pub fn all(&self) -> bool {
        let mut failed = self.walk(None, false) | self.walk(None, true);
        if self.wounds.kind == Kind::Segment {
            [false, true].into_iter().for_each(|backwards| self.skip(backwards));
        }
        for key in &self.store.universe {
            failed |= self.get(key);
        }
        failed
    }

    /// Whether `verify` finds what it must: any damage to a segment.
    pub fn verify(&self) {
        let report = self.db.verify().unwrap();
        if self.wounds.kind == Kind::Segment {
            assert!(!report.is_ok(), "verify did not find the damage");
        }
        report.problems.iter().for_each(|problem| self.wounds.check(problem));
    }
}
