//! What the writers of a workload write, decided by its seed, so the contents of the store after any number
//! of batches are known.

use super::fates::Keyspaces;
use crate::contents::{Change, Span, apply, batch_of, transact};
use crate::home::Home;
use crate::support::Rng;
use sidebloom::{Batch, Durability, Keyspace, Result, Value};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// A seed for one part of what another seed decides.
pub fn mix(parts: &[u64]) -> u64 {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

type Rows = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// The rows of one writer at one time.
#[derive(Debug, Clone, Default)]
pub struct State {
    digest: u64,
    pub rows: Rows,
}

/// A store's progress: what it holds, in batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whether the rows ingested at the start are present.
    pub ingested: bool,
    /// The number of batches of each writer.
    pub batches: Vec<u64>,
    /// What it holds besides.
    pub keyspaces: Keyspaces,
}

impl Found {
    pub fn nothing(writers: usize) -> Found {
        Found { ingested: false, batches: vec![0; writers], keyspaces: Keyspaces::new() }
    }
}

#[derive(Debug)]
pub struct Plan {
    pub seed: u64,
    /// Where the rows are.
    pub home: Home,
    pub writers: usize,
    pub ingests: bool,
    /// Whether all segments get filters.
    pub has_filters: bool,
    /// Whether each writer's keys are a separate range. Otherwise the writers' keys interleave.
    is_apart: bool,
    pub keys: u64,
    /// For each writer: its rows after each number of batches.
    states: Vec<Vec<State>>,
}

impl Plan {
    pub fn new(seed: u64, batches: u64) -> Plan {
        let mut rng = Rng::new(mix(&[seed, 1]));
        let mut plan = Plan {
            seed,
            home: Home::of_seed(mix(&[seed, 8])),
            writers: 2 + rng.below(3) as usize,
            ingests: rng.percent(40),
            has_filters: rng.percent(60),
            is_apart: rng.percent(50),
            keys: *rng.pick(&[10, 30, 60, 100]),
            states: Vec::new(),
        };
        plan.states = (0..plan.writers).map(|writer| plan.states_of(writer, batches)).collect();
        plan
    }

    fn states_of(&self, writer: usize, batches: u64) -> Vec<State> {
        let mut rows = Rows::new();
        if self.ingests {
            rows.insert(self.count_key(writer), Arc::from(*b"0"));
            let ingested = (0..self.keys).filter(|k| k % 3 == 0);
            rows.extend(ingested.map(|k| (self.key(writer, k), self.value(writer, 0, k))));
        }
        let mut states = vec![State::of(rows.clone())];
        for i in 1..=batches {
            apply(&mut rows, &self.changes(writer, i));
            states.push(State::of(rows.clone()));
        }
        states
    }

    /// Each writer's key `count` holds the number of its last batch.
    fn count_key(&self, writer: usize) -> Vec<u8> {
        self.owned(writer, b"count")
    }

    /// Keys in clusters of eight with gaps between them, some long, and one empty.
    pub fn key(&self, writer: usize, k: u64) -> Vec<u8> {
        match k {
            0 if writer == 0 => Vec::new(),
            1 => self.owned(writer, b""),
            _ if k % 16 == 5 => self.owned(writer, format!("{}{k}", "0".repeat(300)).as_bytes()),
            _ => self.owned(writer, format!("{:06}", k / 8 * 700 + k % 8).as_bytes()),
        }
    }

    fn owned(&self, writer: usize, body: &[u8]) -> Vec<u8> {
        let owner = [b'a' + 3 * writer as u8];
        if self.is_apart { [&owner, body].concat() } else { [body, &owner].concat() }
    }

    fn owner(&self, key: &[u8]) -> Option<usize> {
        let owner = if self.is_apart { key.first() } else { key.last() };
        let Some(owner) = owner else { return Some(0) };
        let writer = usize::from(owner.checked_sub(b'a')? / 3);
        (writer < self.writers).then_some(writer)
    }

    fn value(&self, writer: usize, batch: u64, k: u64) -> Arc<[u8]> {
        let mut rng = Rng::new(mix(&[self.seed, 2, writer as u64, batch, k]));
        let len = match rng.below(100) {
            0..6 => 0,
            6..10 => 100 + rng.below(3000),
            10 => 15_000,
            _ => rng.below(60),
        };
        let compresses = rng.percent(50);
        let number = format!("{batch} ");
        let rest = (0..).map(|_| if compresses { b'.' } else { rng.next() as u8 });
        number.bytes().chain(rest).take(len as usize).collect()
    }

    /// The changes of a writer's batch number `i`, from 1.
    fn changes(&self, writer: usize, i: u64) -> Vec<Change<Vec<u8>, Arc<[u8]>>> {
        let mut rng = Rng::new(mix(&[self.seed, 3, writer as u64, i]));
        let mut changes = Vec::new();
        if self.is_apart && rng.percent(5) {
            // Everything that the writer has, except what the batch adds after it.
            changes.push(Change::DeleteSpan(Span::Prefix(self.owned(writer, b""))));
        }
        changes.push(Change::Put(self.count_key(writer), i.to_string().into_bytes().into()));
        let count = match rng.below(20) {
            0 => 0,
            1 => 30,
            _ => rng.below(6),
        };
        for _ in 0..count {
            let k = rng.below(self.keys);
            let key = self.key(writer, k);
            changes.push(match rng.below(100) {
                0..25 => Change::Delete(key),
                25..35 => Change::DeleteSpan(self.span(writer, key, &mut rng)),
                _ => Change::Put(key, self.value(writer, i, k)),
            });
        }
        if rng.percent(8) {
            let from = rng.below(self.keys);
            let gap = (from..self.keys).take(self.keys as usize / 3);
            changes.extend(gap.map(|k| Change::Delete(self.key(writer, k))));
        }
        changes
    }

    /// A range of a writer's keys from this one on, without the count; a single key if the keys interleave.
    fn span(&self, writer: usize, key: Vec<u8>, rng: &mut Rng) -> Span<Vec<u8>> {
        let other = self.key(writer, 1 + rng.below(self.keys - 1));
        let end = if rng.percent(50) { Bound::Excluded(other) } else { Bound::Included(other) };
        let span = Span::Range(Bound::Included(key.clone()), end);
        if self.is_apart && !span.is_refused() { span } else { Span::only(key) }
    }

    pub fn batch(&self, rows: &Keyspace, writer: usize, i: u64) -> Batch {
        batch_of(rows, &self.changes(writer, i))
    }

    /// Writes a batch as a transaction.
    pub fn transact(&self, rows: &Keyspace, writer: usize, i: u64, durability: Durability) -> Result<()> {
        transact(rows, &self.changes(writer, i), durability)
    }

    /// The rows of a batch; `None` if it deletes anything.
    pub fn puts(&self, writer: usize, i: u64) -> Option<Rows> {
        let row = |change| match change {
            Change::Put(key, value) => Some((key, value)),
            Change::Delete(_) | Change::DeleteSpan(_) => None,
        };
        self.changes(writer, i).into_iter().map(row).collect()
    }

    /// The rows to ingest before anything else is written, in order.
    pub fn ingested(&self) -> Rows {
        let states = self.states.iter().filter_map(|states| states.first());
        states.flat_map(|state| state.rows.clone()).collect()
    }

    pub fn state(&self, writer: usize, batches: u64) -> &State {
        &self.states[writer][batches as usize]
    }

    /// The progress of the store that has exactly these rows. An error if there was never such a store.
    pub fn identify(
        &self,
        rows: impl Iterator<Item = sidebloom::Result<(Vec<u8>, Value)>>,
    ) -> Result<Found, String> {
        let mut of_writers = vec![Vec::new(); self.writers];
        let mut last: Option<Vec<u8>> = None;
        for row in rows {
            let (key, value) = row.map_err(|e| format!("iteration: {e}"))?;
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(format!("key {} is out of order", key.escape_ascii()));
            }
            let owner = self.owner(&key).ok_or_else(|| format!("key {} of nobody", key.escape_ascii()))?;
            last = Some(key.clone());
            of_writers[owner].push((key, value));
        }
        let mut found = Found { ingested: self.ingests && last.is_some(), ..Found::nothing(0) };
        for (writer, rows) in of_writers.iter().enumerate() {
            let batches = self.count(writer, rows)?;
            found.batches.push(batches);
            if self.ingests && !found.ingested {
                continue; // Nothing is there.
            }
            let digest = digest(rows.iter().map(|(key, value)| (key.as_slice(), &**value)));
            let state = &self.states[writer][batches as usize];
            if digest != state.digest {
                return Err(format!("writer {writer}, after {batches} batches: {}", state.differences(rows)));
            }
        }
        Ok(found)
    }

    fn count(&self, writer: usize, rows: &[(Vec<u8>, Value)]) -> Result<u64, String> {
        let key = self.count_key(writer);
        let Some((_, count)) = rows.iter().find(|(found, _)| *found == key) else { return Ok(0) };
        let number = std::str::from_utf8(count).ok().and_then(|count| count.parse().ok());
        let number = number.filter(|n| (*n as usize) < self.states[writer].len());
        number.ok_or_else(|| format!("writer {writer} has count {}", count.escape_ascii()))
    }

    /// Looks up every key that a writer ever writes, and some that nobody does. Filters must not hide any.
    pub fn check_lookups(&self, db: &Keyspace, found: &Found) -> Result<(), String> {
        let none = State::default();
        for writer in 0..self.writers {
            let is_empty = self.ingests && !found.ingested;
            let state = if is_empty { &none } else { self.state(writer, found.batches[writer]) };
            let keys: Vec<_> = (0..self.keys).map(|k| self.key(writer, k)).collect();
            let values = db.multi_get(&keys).map_err(|e| format!("multi_get: {e}"))?;
            for (key, many) in keys.iter().zip(values) {
                let one = db.get(key).map_err(|e| format!("get {}: {e}", key.escape_ascii()))?;
                let expected = state.rows.get(key).map(|value| &**value);
                if one.as_deref() != expected || many.as_deref() != expected {
                    return Err(format!(
                        "key {}: get finds {:?}, multi_get {:?}, iteration found {:?} bytes",
                        key.escape_ascii(),
                        one.map(|value| value.len()),
                        many.map(|value| value.len()),
                        expected.map(<[u8]>::len)
                    ));
                }
                let absent = [key, b"?".as_slice()].concat();
                if db.contains_key(&absent).map_err(|e| e.to_string())? {
                    return Err(format!("key {} was never written", absent.escape_ascii()));
                }
            }
        }
        Ok(())
    }
}

impl State {
    fn of(rows: Rows) -> State {
        State { digest: digest(rows.iter().map(|(key, value)| (key.as_slice(), &**value))), rows }
    }

    fn differences(&self, rows: &[(Vec<u8>, Value)]) -> String {
        let found: BTreeMap<&[u8], &[u8]> = rows.iter().map(|(k, v)| (k.as_slice(), &**v)).collect();
        let brief = |value: &[u8]| {
            format!("{} bytes \"{}\"", value.len(), value[..value.len().min(8)].escape_ascii())
        };
        let wrong = self.rows.iter().filter_map(|(key, value)| match found.get(key.as_slice()) {
            None => Some(format!("{} is lost", key.escape_ascii())),
            Some(other) if *other == &**value => None,
            Some(other) => Some(format!("{} has {}, not {}", key.escape_ascii(), brief(other), brief(value))),
        });
        let extra = found.iter().filter(|(key, _)| !self.rows.contains_key(**key));
        let extra = extra.map(|(key, value)| format!("{} is back with {}", key.escape_ascii(), brief(value)));
        wrong.chain(extra).take(10).collect::<Vec<_>>().join("; ")
    }
}

fn digest<'a>(rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> u64 {
    let mut digest = Xxh3::new();
    for (key, value) in rows {
        for part in [key, value] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    digest.digest()
}
