//! What each writer tried, and what a store may hold afterwards.

use crate::contents::{Change, Span, apply, part_of};
use crate::support::{Contents, Rng};
use sidebloom::{Error, Result};
use std::ops::Bound;

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Acknowledged,
    /// The log failed, or the write has not ended yet: a later open may find the batch, whole, but only as
    /// the writer's last one.
    Failed,
    /// The store was already read-only, so nothing of the batch was written.
    Refused,
}

#[derive(Debug, Clone)]
struct Attempt {
    changes: Vec<Change>,
    outcome: Outcome,
}

/// One writer's attempts, in order. Attempt `i` sets the writer's key `count` to `i`, so the contents tell
/// how many batches survived.
#[derive(Debug, Clone)]
pub struct History {
    writer: u8,
    salt: u64,
    /// The contents when the store was opened, after the first `from` attempts.
    base: Contents,
    from: u64,
    attempts: Vec<Attempt>,
    /// What the store holds now.
    pub live: Contents,
    /// Attempts up to this one that were acknowledged are durable.
    pub synced: u64,
}

impl History {
    pub fn new(writer: u8, salt: u64) -> Self {
        let (base, live) = Default::default();
        History { writer, salt, base, from: 0, attempts: Vec::new(), live, synced: 0 }
    }

    pub fn owns(&self, key: &[u8]) -> bool {
        key.first().copied().unwrap_or(b'a') == self.letter()
    }

    fn letter(&self) -> u8 {
        b'a' + self.writer
    }

    fn key(&self, rest: &str) -> Vec<u8> {
        format!("{}/{rest}", char::from(self.letter())).into_bytes()
    }

    /// A key that the writer uses: with gaps, rarely long, and for the first writer sometimes empty.
    pub fn any_key(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.below(40) {
            0 if self.writer == 0 => Vec::new(),
            1 => self.key(&"long".repeat(10 + rng.below(100) as usize)),
            _ => self.key(&format!("key{:03}", rng.below(60) * 7)),
        }
    }

    /// A range of the writer's keys that begins at this one, without the count.
    fn span(&self, key: Vec<u8>, rng: &mut Rng) -> Span<Vec<u8>> {
        let end = self.key(&format!("key{:03}", rng.below(70) * 6));
        let span = Span::Range(Bound::Included(key.clone()), Bound::Excluded(end));
        if span.is_refused() || span.holds(&self.key("count")) { Span::only(key) } else { span }
    }

    fn changes(&self, number: u64) -> Vec<Change> {
        let mut rng = Rng::new(self.salt ^ number << 20 ^ u64::from(self.writer) << 50);
        let mut changes = Vec::new();
        if rng.percent(5) {
            changes.push(Change::DeleteSpan(Span::Prefix(self.key(""))));
        }
        changes.push(Change::Put(self.key("count"), number.to_string().into_bytes()));
        for _ in 0..rng.below(6) {
            let len = match rng.below(20) {
                0 => rng.below(3500),
                1 => 0,
                _ => rng.below(60),
            };
            let value = (0..len).map(|at| (number + at) as u8).collect();
            let key = self.any_key(&mut rng);
            changes.push(match rng.below(100) {
                0..20 => Change::Delete(key),
                20..30 => Change::DeleteSpan(self.span(key, &mut rng)),
                _ => Change::Put(key, value),
            });
        }
        changes
    }

    /// Starts an attempt. Until [`end`](Self::end), it counts as failed.
    pub fn begin(&mut self) -> Vec<Change> {
        let changes = self.changes(self.last() + 1);
        self.attempts.push(Attempt { changes: changes.clone(), outcome: Outcome::Failed });
        changes
    }

    pub fn end(&mut self, result: &Result<()>) {
        let Some(last) = self.attempts.last_mut() else { return };
        last.outcome = match result {
            Ok(()) => Outcome::Acknowledged,
            Err(Error::Poisoned { .. }) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        };
        if last.outcome == Outcome::Acknowledged {
            apply(&mut self.live, &last.changes);
        }
    }

    /// The number of the last attempt.
    fn last(&self) -> u64 {
        self.from + self.attempts.len() as u64
    }

    pub fn last_acknowledged(&self) -> u64 {
        let at = self.attempts.iter().rposition(|attempt| attempt.outcome == Outcome::Acknowledged);
        at.map_or(self.from, |at| self.from + at as u64 + 1)
    }

    /// The writer's part of a store's contents.
    pub fn part_of(&self, found: &Contents) -> Contents {
        part_of(found, |key| self.owns(key))
    }

    /// Checks what a later open found: the acknowledged attempts up to some number, at least `least`, and
    /// nothing but that attempt in addition. The history then continues from there.
    pub fn settle(&mut self, found: &Contents, least: u64, what: &str) {
        let (mine, writer) = (self.part_of(found), self.writer);
        let count = mine.get(&self.key("count")).map_or(Ok(0), |n| String::from_utf8_lossy(n).parse());
        let count: u64 =
            count.unwrap_or_else(|_| panic!("{what}: writer {writer}: the count is not a number"));
        let last = self.last();
        assert!(
            (least..=last).contains(&count),
            "{what}: writer {writer}: attempt {count} is the last one found, but {least} of {last} must be there"
        );
        let mut expected = self.base.clone();
        let survivors = self.attempts.iter().take((count - self.from) as usize).enumerate();
        for (at, attempt) in survivors {
            let is_last = self.from + at as u64 + 1 == count;
            assert!(
                !is_last || attempt.outcome != Outcome::Refused,
                "{what}: writer {writer}: attempt {count} was refused, but it is there"
            );
            if is_last || attempt.outcome == Outcome::Acknowledged {
                apply(&mut expected, &attempt.changes);
            }
        }
        assert_same(&mine, &expected, &format!("{what}: writer {writer} after attempt {count}"));
        (self.base, self.live) = (mine.clone(), mine);
        (self.from, self.synced) = (count, count);
        self.attempts.clear();
    }
}

/// Rows that are ingested once.
#[derive(Debug, Clone, Default)]
pub struct Ingested {
    pub rows: Contents,
    /// Whether the store holds them; `None` after a failure, until it is opened again.
    pub there: Option<bool>,
}

impl Ingested {
    pub fn owns(key: &[u8]) -> bool {
        key.first() == Some(&b'i')
    }

    /// The ingested rows in the open store. A failed ingest leaves them unchanged.
    pub fn live(&self) -> Contents {
        if self.there == Some(true) { self.rows.clone() } else { Contents::new() }
    }

    /// Checks what a later open found: all rows or none.
    pub fn settle(&mut self, found: &Contents, what: &str) {
        let mine = part_of(found, Self::owns);
        let there = self.there.unwrap_or(!mine.is_empty());
        let expected = if there { self.rows.clone() } else { Contents::new() };
        assert_same(&mine, &expected, &format!("{what}: ingested rows"));
        self.there = Some(there);
    }
}

/// Everything that the writers of a store did.
#[derive(Debug, Clone)]
pub struct Model {
    pub histories: Vec<History>,
    pub ingested: Ingested,
}

impl Model {
    pub fn settle(&mut self, found: &Contents, least: &[u64], what: &str) {
        for (history, least) in self.histories.iter_mut().zip(least) {
            history.settle(found, *least, what);
        }
        self.ingested.settle(found, what);
        let foreign = found.keys().find(|k| !Ingested::owns(k) && self.histories.iter().all(|h| !h.owns(k)));
        assert_eq!(foreign, None, "{what}: a key that nobody wrote");
    }

    pub fn last_acknowledged(&self) -> Vec<u64> {
        self.histories.iter().map(History::last_acknowledged).collect()
    }

    pub fn synced(&self) -> Vec<u64> {
        self.histories.iter().map(|history| history.synced).collect()
    }

    pub fn live(&self) -> Contents {
        let mut live = self.ingested.live();
        self.histories.iter().for_each(|history| live.extend(history.live.clone()));
        live
    }
}

/// Fails with a short message.
pub fn assert_same(found: &Contents, expected: &Contents, what: &str) {
    let differing = |a: &Contents, b: &Contents| -> Vec<String> {
        let other = a.iter().filter(|(key, value)| b.get(*key) != Some(*value));
        let shown = |key: &Vec<u8>| key.escape_ascii().to_string().chars().take(40).collect();
        other.map(|(key, _)| shown(key)).take(10).collect()
    };
    let (extra, missing) = (differing(found, expected), differing(expected, found));
    assert!(
        extra.is_empty() && missing.is_empty(),
        "{what}: found wrongly {extra:?}, expected but not found {missing:?}"
    );
}
