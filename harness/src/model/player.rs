//! A program under one configuration: the store, the model, and what both have open.

use super::blob::{Blob, Model};
use super::cursors::Cursors;
use super::neighbours::Neighbours;
use super::program::Program;
use super::rows::Walk;
use super::store_location::StoreLocation;
use super::transactions::Open;
use crate::config;
use crate::home::Home;
use crate::support::{Rng, TestClock};
use sidebloom::{Db, Keyspace, Options, Snapshot};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

pub struct Player<'a> {
    pub program: &'a Program,
    pub rng: Rng,
    pub place: StoreLocation,
    /// The time of day, which passes only between operations.
    pub clock: Arc<TestClock>,
    /// The latest moment that the store has shown before the time of day was set back, in milliseconds.
    pub latest: u64,
    /// `None` between close and reopen.
    pub open: Option<Db>,
    /// Where the program's rows are, and its handle while the store is open.
    pub home: Home,
    pub rows: Option<Keyspace>,
    pub neighbours: Neighbours,
    /// Follows the store, also while it is closed, damaged and repaired.
    pub follower: Option<Db>,
    pub model: Model,
    pub snapshots: Vec<(Snapshot, Arc<Model>)>,
    pub iterators: Vec<Walk>,
    pub cursors: Cursors,
    pub transactions: Vec<Open>,
    /// Commits, and those that had a conflict.
    pub committed: u64,
    pub conflicts: u64,
    /// Hash of all answers, except those in threads.
    pub transcript: Xxh3,
    pub calls: u64,
    pub damaged: u64,
    /// Phases of threads so far.
    pub phases: u64,
    /// The seed, the configuration and the options.
    name: String,
    options: String,
    /// The number of the current operation.
    pub at: usize,
}

impl<'a> Player<'a> {
    /// Opens a new store.
    pub fn new(program: &'a Program, seed: u64, configuration: u64) -> Self {
        let mut rng = Rng::new(seed << 8 | configuration);
        let place = StoreLocation::random(&mut rng);
        let home = match program.lifetime {
            Some(millis) => Home::random_of(&mut rng, Duration::from_millis(millis)),
            None => Home::random(&mut rng),
        };
        let mut player = Player {
            program,
            rng,
            place,
            clock: Arc::new(TestClock::new()),
            latest: 0,
            open: None,
            home,
            rows: None,
            neighbours: Neighbours::default(),
            follower: None,
            model: Model::new(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            cursors: Cursors::default(),
            transactions: Vec::new(),
            committed: 0,
            conflicts: 0,
            transcript: Xxh3::new(),
            calls: 0,
            damaged: 0,
            phases: 0,
            name: format!("seed {seed}, configuration {configuration}"),
            options: String::new(),
            at: 0,
        };
        player.open();
        player
    }

    pub fn db(&self) -> &Db {
        self.open.as_ref().unwrap()
    }

    /// The keyspace that the program's rows are in.
    pub fn rows(&self) -> &Keyspace {
        self.rows.as_ref().unwrap()
    }

    /// The current position, for messages.
    pub fn what(&self) -> String {
        let op = self.program.ops.get(self.at).map_or("the end".into(), |op| format!("{op:?}"));
        let op: String = op.chars().take(300).collect();
        let (name, at, home) = (&self.name, self.at, self.home);
        format!("{name}, operation {at} ({op}), {:?}, {home:?}, {}", self.place, self.options)
    }

    /// The outcome of a call that cannot fail here.
    #[track_caller]
    pub fn ok<T>(&self, what: &str, outcome: sidebloom::Result<T>) -> T {
        outcome.unwrap_or_else(|e| panic!("{}: {what}: {e}", self.what()))
    }

    #[track_caller]
    pub fn same<T: PartialEq + Debug>(&self, what: &str, found: T, expected: T) {
        if found != expected {
            panic!("{}: {what}: expected {expected:?}, found {found:?}", self.what());
        }
    }

    #[track_caller]
    pub fn same_value(&self, what: &str, key: &[u8], found: Option<&[u8]>, model: &Model) {
        let expected = model.get(key);
        if found != expected.map(|value| &**value) {
            let (key, found) = (Blob::from(key), found.map(Blob::from));
            panic!("{}: {what} of {key:?}: expected {expected:?}, found {found:?}", self.what());
        }
    }

    pub fn options(&mut self) -> Options {
        config::random(&mut self.rng, self.place.fs()).clock(Arc::clone(&self.clock) as _)
    }

    pub fn open(&mut self) {
        let options = self.options();
        self.options = config::describe(&options);
        let db = options.open(self.place.store());
        self.take(self.ok("open", db));
        self.calls += 1;
    }

    /// Goes on with this opening.
    pub fn take(&mut self, db: Db) {
        self.rows = Some(self.ok("open the keyspace", self.home.of(&db)));
        self.open = Some(db);
    }

    /// Closes the store. Snapshots and iterators end before it does.
    pub fn close(&mut self) {
        self.snapshots.clear();
        self.iterators.clear();
        self.cursors.clear();
        self.transactions.clear();
        (self.rows, self.open) = (None, None);
    }
}
