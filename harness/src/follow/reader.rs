//! A process that follows the store and checks what it sees.

use super::rows::{ChildArgs, KEYS, Numbers, SOURCES, check, key, number_of, rows_of, value};
use crate::home::Home;
use crate::support::Rng;
use crate::{brief, config};
use sidebloom::fs::RealFs;
use sidebloom::{Db, Error, Keyspace, Snapshot};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIVES: Duration = Duration::from_secs(30);
/// Snapshots that are kept and read again later.
const KEPT: usize = 4;

struct Reader {
    numbers: Numbers,
    /// Where the rows are.
    home: Home,
    rng: Rng,
    /// What the reader has seen of each source.
    seen: [u64; SOURCES],
    kept: Vec<(Snapshot, [u64; SOURCES])>,
}

/// Runs until it is killed.
pub fn reader(args: &ChildArgs) -> ExitCode {
    let (rng, numbers) = (Rng::new(args.seed), Numbers::open(&args.dir));
    let home = Home::of_seed(args.seed >> 16);
    let mut reader = Reader { numbers, home, rng, seen: [0; SOURCES], kept: Vec::new() };
    let started = Instant::now();
    while started.elapsed() < LIVES {
        match config::random(&mut reader.rng, Arc::new(RealFs)).follow(true).open(args.dir.join("store")) {
            Ok(db) => {
                (0..1 + reader.rng.below(200)).for_each(|_| reader.round(&db));
                reader.kept.clear();
            }
            Err(Error::NotAStore { .. }) => std::thread::sleep(Duration::from_millis(1)),
            // The store is just being created: there is no file to lock yet, but its lock is held.
            Err(Error::Locked { .. } | Error::Io { .. }) if reader.seen == [0; SOURCES] => {}
            Err(error) => panic!("follow: {error}"),
        }
    }
    ExitCode::from(3)
}

/// Tells the parent.
fn say(what: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("{what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

impl Reader {
    fn round(&mut self, db: &Db) {
        let acknowledged: [u64; SOURCES] = std::array::from_fn(|source| self.numbers.acknowledged(source));
        if self.rng.percent(50) {
            db.catch_up().unwrap_or_else(|e| panic!("catch up: {e}"));
            self.seen = std::array::from_fn(|source| self.seen[source].max(acknowledged[source]));
        }
        match self.rng.below(10) {
            0..=2 => self.check_point(&self.rows(db)),
            3 if self.rng.percent(20) => {
                let report = db.verify().unwrap_or_else(|e| panic!("verify: {e}"));
                assert!(report.is_ok(), "{:?}", report.problems);
            }
            4 | 5 if !self.kept.is_empty() => self.check_kept(),
            7 => brief::check(db).unwrap_or_else(|e| panic!("{e}")),
            6 => std::thread::sleep(Duration::from_micros(self.rng.below(30_000))),
            _ => self.check_all(&self.rows(db)),
        }
    }

    /// The keyspace as the store has it now: a reader may be there before it.
    fn rows(&self, db: &Db) -> Keyspace {
        self.home.so_far(db).unwrap_or_else(|e| panic!("keyspace: {e}"))
    }

    fn check_all(&mut self, db: &Keyspace) {
        let snapshot = db.snapshot();
        self.seen = check(snapshot.iter(), self.seen).unwrap_or_else(|e| panic!("{e}"));
        for (source, &number) in self.seen.iter().enumerate() {
            let last = self.numbers.started(source);
            assert!(number <= last, "source {source} shows {number}, which was never written; {last} was");
        }
        say("checked");
        if self.rng.percent(30) {
            self.kept.push((snapshot, self.seen));
            if self.kept.len() > KEPT {
                self.kept.remove(0);
            }
        }
    }

    /// A single key may be newer than what was seen.
    fn check_point(&mut self, db: &Keyspace) {
        let source = self.rng.below(SOURCES as u64) as usize;
        let least = self.seen[source];
        let indexes: Vec<usize> =
            (0..1 + self.rng.below(9)).map(|_| self.rng.below(KEYS as u64) as usize).collect();
        let keys: Vec<_> = indexes.iter().map(|&index| key(source, index)).collect();
        let found = if self.rng.percent(50) {
            db.multi_get(&keys)
        } else {
            keys.iter().map(|key| db.get(key)).collect()
        };
        let found = found.unwrap_or_else(|e| panic!("get: {e}"));
        let last = self.numbers.started(source);
        for (index, found) in indexes.into_iter().zip(found) {
            let found = found.as_deref();
            let fits = |number: u64| found == value(source, index, number).as_deref();
            let is_explained = match found.map(number_of) {
                Some(number) => (least..=last).contains(&number) && fits(number),
                None => (least..=last).any(fits),
            };
            let shown = found.map(number_of);
            assert!(is_explained, "key {index} of source {source} is at {shown:?}, not {least} to {last}");
        }
    }

    /// Snapshots do not change.
    fn check_kept(&mut self) {
        let (snapshot, numbers) = self.rng.pick(&self.kept);
        let again = check(snapshot.iter(), *numbers).unwrap_or_else(|e| panic!("a snapshot: {e}"));
        assert_eq!(again, *numbers, "a snapshot has changed");
        let rows = rows_of(*numbers);
        for (source, index) in
            (0..SOURCES).flat_map(|source| [0, KEYS / 2, KEYS - 1].map(|index| (source, index)))
        {
            let key = key(source, index);
            let found = snapshot.get(&key).unwrap_or_else(|e| panic!("a snapshot: {e}"));
            assert_eq!(found.as_deref(), rows.get(&key).map(Vec::as_slice));
        }
        say("checked a snapshot again");
    }
}
