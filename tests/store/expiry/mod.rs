//! Rows that expire.

mod basics;
mod clock;
mod compaction;
mod kept_buckets;
mod random;
mod windows;

use crate::support::{TestClock, fast_dir, tiny};
use sidebloom::{Db, Expiry, Options};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A tiny store with a clock of its own.
struct Timed {
    dir: TempDir,
    clock: Arc<TestClock>,
    db: Db,
}

impl Timed {
    fn new() -> Self {
        Timed::with(|options| options)
    }

    fn with(set: impl Fn(Options) -> Options) -> Self {
        let (dir, clock) = (fast_dir(), Arc::new(TestClock::new()));
        let db = set(options(&clock)).open(dir.path().join("store")).unwrap();
        Timed { dir, clock, db }
    }

    /// The store after it was closed and opened again.
    fn reopened(self) -> Self {
        let Timed { dir, clock, db } = self;
        db.close().unwrap();
        let db = options(&clock).open(dir.path().join("store")).unwrap();
        Timed { dir, clock, db }
    }

    fn get(&self, key: &str) -> Option<String> {
        self.db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    fn keys(&self) -> Vec<String> {
        self.db.iter().map(|row| String::from_utf8(row.unwrap().0).unwrap()).collect()
    }

    fn segments(&self) -> usize {
        self.db.stats().levels.iter().map(|level| level.segments).sum()
    }
}

fn options(clock: &Arc<TestClock>) -> Options {
    tiny().clock(Arc::clone(clock) as _)
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn after(n: u64) -> Expiry {
    Expiry::after(secs(n))
}
