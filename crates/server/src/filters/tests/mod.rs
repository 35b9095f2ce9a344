//! Filters against a plain model, and each rule by itself.

mod dumps;
mod model;
mod rules;

use super::*;
use sidebloom::WallClock;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A clock that stands still.
#[derive(Debug, Clone)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn at(millis: u64) -> Self {
        Hand(Arc::new(AtomicU64::new(millis)))
    }

    fn advance(&self, millis: u64) {
        self.0.fetch_add(millis, Relaxed);
    }
}

impl WallClock for Hand {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0.load(Relaxed))
    }
}

fn open(path: &Path, clock: &Hand) -> Filters {
    let options = FiltersOptions {
        memtable_bytes: 1 << 20,
        block_cache_bytes: 1 << 20,
        clock: Arc::new(clock.clone()),
        ..FiltersOptions::default()
    };
    Filters::open(path, options).unwrap()
}

fn bloom() -> Parameters {
    Parameters::Bloom(Bloom::default())
}

fn cuckoo() -> Parameters {
    Parameters::Cuckoo(Cuckoo::default())
}

/// The outcome of one command.
fn apply(filters: &Filters, filter: &Arc<Filter>, op: ItemOp, items: &[&str]) -> Result<Vec<ItemOutcome>> {
    let mut commands = ItemCommands::default();
    commands.push(filter, op, false, items.iter().map(|item| filter.hash(item.as_bytes())));
    filters.apply(&commands).unwrap().pop().unwrap()
}

fn counts(filters: &Filters, filter: &Filter, items: &[&str]) -> Vec<u64> {
    let hashes: Vec<u128> = items.iter().map(|item| filter.hash(item.as_bytes())).collect();
    filters.counts(filter, &hashes).unwrap()
}
