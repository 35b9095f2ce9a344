//! Transactions and conditional writes of a schedule, in keys of their own: lists, of which `history.rs` and
//! `second_opinion.rs` say whether some order explains them.

use crate::history::{self, Done, Event, Outcome, appended, parse};
use crate::second_opinion;
use crate::support::{Contents, Rng};
use sidebloom::{Db, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The lists: few, so that transactions conflict.
const LISTS: u64 = 6;
/// They are among the keys of the writers, which share segments with them.
const PREFIX: &str = "key01list";

/// What all of them did.
#[derive(Debug, Default)]
pub struct Histories {
    last: AtomicU64,
    events: Mutex<Vec<Event>>,
}

fn key(list: u64) -> String {
    format!("{PREFIX}{list}")
}

impl Histories {
    /// Checks what was done against a store's contents.
    #[track_caller]
    pub fn check(&self, found: &Contents, what: &str) {
        let lists: BTreeMap<u64, Vec<u64>> = (0..LISTS)
            .map(|list| (list, parse(found.get(key(list).as_bytes()).map(Vec::as_slice))))
            .filter(|(_, numbers)| !numbers.is_empty())
            .collect();
        let events = self.events.lock().unwrap();
        let checked = history::check(&events, &lists).and_then(|()| second_opinion::check(&events, &lists));
        checked.unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    /// How many transactions had this outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        let has = |event: &&Event| matches!(event, Event::Ended(_, its) if *its == outcome);
        self.events.lock().unwrap().iter().filter(has).count() as u64
    }

    fn note(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    /// A transaction, or a conditional write.
    pub fn attempt(&self, db: &Db, rng: &mut Rng) -> Result<()> {
        let number = self.last.fetch_add(1, SeqCst) + 1;
        self.note(Event::Began(number));
        let mut done = Done { number, reads: Vec::new(), appends: BTreeSet::new() };
        let result = match rng.below(8) {
            0 => update(db, &mut done, rng.below(LISTS)),
            1 => insert_new(db, &mut done, rng.below(LISTS)),
            _ => transaction(db, &mut done, rng),
        };
        let (outcome, result) = match result {
            Ok(()) => (Outcome::Committed, Ok(())),
            Err(Error::Conflict { .. }) => (Outcome::Conflict, Ok(())),
            Err(error) => (Outcome::Unknown, Err(error)),
        };
        self.note(Event::Ended(done, outcome));
        result
    }
}

fn update(db: &Db, done: &mut Done, list: u64) -> Result<()> {
    done.appends.insert(list);
    db.update(key(list), |before| {
        done.reads = vec![(list, parse(before))];
        Some(appended(&parse(before), done.number))
    })?;
    Ok(())
}

fn insert_new(db: &Db, done: &mut Done, list: u64) -> Result<()> {
    done.appends.insert(list);
    if db.insert_new(key(list), appended(&[], done.number))? {
        done.reads.push((list, Vec::new()));
    } else {
        done.appends.clear();
    }
    Ok(())
}

/// Reads some lists, alone or in a walk, and appends to some.
fn transaction(db: &Db, done: &mut Done, rng: &mut Rng) -> Result<()> {
    let tx = db.transaction();
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    if rng.percent(30) {
        let mut rows: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for row in tx.prefix(PREFIX) {
            let (key, value) = row?;
            rows.insert(String::from_utf8(key).unwrap(), parse(Some(&value)));
        }
        lists.extend((0..LISTS).map(|list| (list, rows.remove(&key(list)).unwrap_or_default())));
    }
    for _ in 0..rng.below(3) {
        let list = rng.below(LISTS);
        lists.insert(list, parse(tx.get(key(list))?.as_deref()));
    }
    for _ in 0..1 + rng.below(2) {
        let list = rng.below(LISTS);
        if done.appends.insert(list) {
            let before = match lists.get(&list) {
                Some(before) => before.clone(),
                None => parse(tx.get(key(list))?.as_deref()),
            };
            tx.put(key(list), appended(&before, done.number))?;
            lists.insert(list, before);
        }
    }
    done.reads = lists.into_iter().collect();
    tx.commit()
}
