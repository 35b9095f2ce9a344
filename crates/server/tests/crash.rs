//! Filters on a disk that loses power, and in a process that is killed: what comes back is what some of the
//! first calls made, and with synced writes, all of them (I4).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a test that fails")]

#[path = "../../../tests/support/mod.rs"]
mod support;

use sidebloom::Durability;
use sidebloom_server::filters::{
    Bloom, Cuckoo, Filters, FiltersOptions, ItemCommands, ItemOp, Kind, Parameters, Refusal,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Crash, Errno, Fault, OpKind, Rng, SimFs, sized};

const ITEMS: u64 = 24;

/// Each filter's parameters and counts.
type State = BTreeMap<String, (Parameters, BTreeMap<u64, u64>)>;

fn open(fs: &SimFs, durability: Durability) -> Filters {
    let options = FiltersOptions {
        durability,
        memtable_bytes: 16 << 10,
        block_cache_bytes: 64 << 10,
        filesystem: Some(Arc::new(fs.clone())),
        ..FiltersOptions::default()
    };
    Filters::open("filters", options).unwrap()
}

/// What is in the store. Fails if a filter's totals are not those of its items, or if rows are left over.
fn state(filters: &Filters) -> State {
    let (page, next) = filters.page(0, 0, usize::MAX, usize::MAX);
    assert_eq!(next, None);
    let mut found = State::new();
    let mut rows = 0;
    for (name, filter) in page {
        let hashes: Vec<u128> = (0..ITEMS).map(|item| filter.hash(&item.to_le_bytes())).collect();
        let counts =
            (0..ITEMS).zip(filters.counts(&filter, &hashes).unwrap()).filter(|(_, count)| *count > 0);
        let counts: BTreeMap<u64, u64> = counts.collect();
        assert_eq!(filter.items(), counts.values().sum::<u64>());
        rows += counts.len() as u64;
        found.insert(String::from_utf8(name).unwrap(), (*filter.parameters(), counts));
    }
    assert_eq!(filters.db().keyspace("items").unwrap().iter().count().unwrap(), rows, "no row is left over");
    found
}

/// One call, and what it makes of the state.
fn step(filters: &Filters, state: &State, rng: &mut Rng) -> (State, Result<(), Refusal>) {
    let mut after = state.clone();
    let name = format!("f{}", rng.below(5));
    let done = match rng.below(20) {
        0..4 => {
            let parameters = if rng.percent(50) {
                Parameters::Bloom(Bloom::default())
            } else {
                Parameters::Cuckoo(Cuckoo::default())
            };
            after.entry(name.clone()).or_insert((parameters, BTreeMap::new()));
            filters.create(0, name.as_bytes(), parameters).map(drop)
        }
        4..16 => {
            let Some(filter) = filters.find(0, name.as_bytes()) else { return (after, Ok(())) };
            let op = match filter.kind() {
                Kind::Bloom => ItemOp::AddNew,
                Kind::Cuckoo => *rng.pick(&[ItemOp::AddNew, ItemOp::Add, ItemOp::Add, ItemOp::Remove]),
            };
            let items: Vec<u64> = (0..=rng.below(6)).map(|_| rng.below(ITEMS)).collect();
            let (_, counts) = after.get_mut(&name).unwrap();
            for item in &items {
                let count = counts.entry(*item).or_default();
                match op {
                    ItemOp::AddNew => *count = (*count).max(1),
                    ItemOp::Add => *count += 1,
                    ItemOp::Remove => *count = count.saturating_sub(1),
                }
            }
            counts.retain(|_, count| *count > 0);
            let mut commands = ItemCommands::default();
            commands.push(&filter, op, false, items.iter().map(|item| filter.hash(&item.to_le_bytes())));
            filters.apply(&commands).map(drop)
        }
        16..18 => {
            after.remove(&name);
            filters.delete(0, &[&name]).map(drop)
        }
        18 => {
            let to = format!("f{}", rng.below(5));
            if let Some(filter) = after.remove(&name) {
                after.insert(to.clone(), filter);
            }
            match filters.rename(0, name.as_bytes(), to.as_bytes(), false) {
                Err(Refusal::NotFound) => Ok(()),
                other => other.map(drop),
            }
        }
        _ if rng.percent(20) => {
            after.clear();
            filters.flush(None)
        }
        _ => filters.db().flush().map_err(Refusal::from),
    };
    (after, done)
}

#[test]
fn i4_what_comes_back_after_a_crash_is_a_prefix_of_the_calls() {
    for seed in 0..sized(60, 1500) {
        let mut rng = Rng::new(seed);
        let mut fs = SimFs::new();
        let mut states = vec![State::new()];
        for life in 0..3 {
            let durability = *rng.pick(&[Durability::Sync, Durability::Os]);
            let filters = open(&fs, durability);
            let found = state(&filters);
            assert!(states.contains(&found), "seed {seed}, life {life}: {found:?} was never there");
            states = vec![found];
            for _ in 0..rng.below(120) {
                let (after, done) = step(&filters, states.last().unwrap(), &mut rng);
                done.unwrap();
                states.push(after);
            }
            assert_eq!(state(&filters), *states.last().unwrap());
            let crash = *rng.pick(&[Crash::Kill, Crash::PowerOrdered, Crash::Power]);
            let after = fs.crash(crash, seed * 3 + life);
            if durability == Durability::Sync || crash == Crash::Kill {
                states.drain(..states.len() - 1); // All of them survive.
            }
            drop(filters);
            fs = after;
        }
    }
}

/// A failed write is not acknowledged, and leaves either the state before it or the one after it.
#[test]
fn i5_a_failed_write_changes_all_or_nothing() {
    for seed in 0..sized(60, 1500) {
        let mut rng = Rng::new(seed);
        let fs = SimFs::new();
        let filters = open(&fs, Durability::Sync);
        let mut now = State::new();
        for _ in 0..20 {
            let (after, done) = step(&filters, &now, &mut rng);
            done.unwrap();
            now = after;
        }
        let kind = *rng.pick(&[OpKind::Append, OpKind::Sync, OpKind::Create]);
        fs.fail(Fault::once(kind, rng.below(6)).with(*rng.pick(&[Errno::Io, Errno::NoSpace])));
        let mut maybe = None;
        for _ in 0..40 {
            let (after, done) = step(&filters, &now, &mut rng);
            if done.is_ok() {
                now = after;
                continue;
            }
            assert_eq!(state(&filters), now, "seed {seed}: what failed is not shown");
            maybe = Some(after);
            break;
        }
        let found = state(&open(&fs.crash(Crash::Kill, seed), Durability::Sync));
        assert!(
            found == now || Some(&found) == maybe.as_ref(),
            "seed {seed}: {found:?}, not {now:?} or {maybe:?}"
        );
    }
}
