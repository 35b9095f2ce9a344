//! Several concurrent writers, each with its own keys, so that the final contents are known; readers, and a
//! thread that flushes and compacts, run at the same time.
//!
//! Each batch also sets its writer's two counters, at both ends of the key space. A snapshot with the
//! counters of all writers must hold exactly the batches that they name.

use super::blob::{Blob, Model};
use super::program::{Write, dated};
use crate::config;
use crate::contents::{add_to, apply, rows_put};
use crate::support::Rng;
use sidebloom::{Batch, Db, Keyspace, Snapshot};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The batches of all writers, and the contents before them.
pub struct Phase<'a> {
    pub db: &'a Db,
    pub rows: &'a Keyspace,
    pub before: &'a Model,
    pub writers: &'a [Vec<Vec<Write>>],
    /// The values of the counters before the first batch; larger than in any earlier phase.
    pub base: u64,
    /// When what they write expires.
    pub until: Option<u64>,
    pub what: &'a str,
}

/// Counts down when a thread ends, even by a panic.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn counters(writer: usize) -> [Blob; 2] {
    [format!("\0count{writer}"), format!("~count{writer}")].map(|key| Blob::from(key.into_bytes()))
}

fn counter(value: u64) -> Blob {
    value.to_be_bytes().to_vec().into()
}

impl Phase<'_> {
    /// Runs the phase. Returns the contents after it, and how many calls there were.
    pub fn run(&self, rng: &mut Rng) -> (Model, u64) {
        let running = AtomicUsize::new(self.writers.len());
        let calls = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for writer in 0..self.writers.len() {
                let running = &running;
                threads.push(scope.spawn(move || {
                    let _running = Running(running);
                    self.write(writer)
                }));
            }
            let (mut first, mut second) = (Rng::new(rng.next()), Rng::new(rng.next()));
            let running = &running;
            threads.push(scope.spawn(move || self.read(running, &mut first)));
            threads.push(scope.spawn(move || self.disturb(running, &mut second)));
            let calls = threads.into_iter().map(|thread| thread.join().unwrap());
            calls.sum()
        });
        let after = self.after(&self.writers.iter().map(|batches| batches.len() as u64).collect::<Vec<_>>());
        (after, calls)
    }

    fn write(&self, writer: usize) -> u64 {
        let [first, last] = counters(writer);
        for (writes, number) in self.writers[writer].iter().zip(self.base + 1..) {
            // Writers ingest concurrently: some of the batches without a deletion.
            let written = match rows_put(writes).filter(|_| number % 3 == 0) {
                Some(mut rows) => {
                    rows.extend([&first, &last].map(|key| (key.clone(), counter(number))));
                    self.rows.ingest(rows.into_iter().map(Ok))
                }
                None => {
                    let mut batch = Batch::new();
                    let mut of_rows = batch.keyspace(self.rows);
                    of_rows.put(&first, counter(number));
                    add_to(&mut of_rows, writes);
                    of_rows.put(&last, counter(number));
                    self.db.write(batch)
                }
            };
            written.unwrap_or_else(|e| panic!("{}: writer {writer}: {e}", self.what));
            let found = self.rows.get(&first).unwrap();
            assert_eq!(
                found.as_deref(),
                Some(&*counter(number)),
                "{}: writer {writer} reads its own write {number}",
                self.what
            );
        }
        2 * self.writers[writer].len() as u64
    }

    /// The contents after this many batches of each writer.
    fn after(&self, done: &[u64]) -> Model {
        let mut model = self.before.clone();
        for (writer, (batches, done)) in self.writers.iter().zip(done).enumerate() {
            for writes in batches.iter().take(*done as usize) {
                apply(&mut model, &*dated(writes, self.until));
            }
            if *done > 0 {
                let number = counter(self.base + done).until_or_never(self.until);
                counters(writer).into_iter().for_each(|key| _ = model.insert(key, number.clone()));
            }
        }
        model
    }

    /// How many batches of each writer a snapshot has. Checks that each is whole.
    fn done(&self, snapshot: &Snapshot) -> Vec<u64> {
        (0..self.writers.len())
            .map(|writer| {
                // Between two phases, a counter of the earlier one may have been deleted.
                let [first, last] = counters(writer).map(|key| {
                    let value = snapshot.get(key).unwrap();
                    let number = value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()));
                    number.saturating_sub(self.base)
                });
                assert_eq!(first, last, "{}: half a batch of writer {writer}", self.what);
                first
            })
            .collect()
    }

    fn check(&self, snapshot: &Snapshot, done: &[u64], backwards: bool, when: &str) {
        let expected = self.after(done);
        let mut rows: Vec<_> = if backwards {
            snapshot.iter().rev().map(|row| row.unwrap()).collect()
        } else {
            snapshot.iter().map(|row| row.unwrap()).collect()
        };
        if backwards {
            rows.reverse();
        }
        let same = rows.iter().map(|(key, value)| (&**key, &**value));
        let what = format!("{}: after {done:?} batches of the writers, {when}", self.what);
        super::rows::assert_same(same, expected.iter().map(|(key, value)| (&**key, &**value)), &what);
    }

    fn read(&self, running: &AtomicUsize, rng: &mut Rng) -> u64 {
        let kept = self.rows.snapshot();
        let kept_done = self.done(&kept);
        let (mut seen, mut calls) = (vec![0; self.writers.len()], 1);
        loop {
            let last = running.load(SeqCst) == 0;
            let snapshot = self.rows.snapshot();
            let done = self.done(&snapshot);
            for (writer, (now, before)) in done.iter().zip(&seen).enumerate() {
                assert!(now >= before, "{}: writer {writer} goes back from {before} to {now}", self.what);
            }
            seen = done;
            let writer = rng.below(self.writers.len() as u64) as usize;
            let both = self.rows.multi_get(&counters(writer)).unwrap();
            if seen[writer] > 0 {
                assert_eq!(both[0], both[1], "{}: multi_get sees half a batch of writer {writer}", self.what);
            }
            calls += 3 + 2 * seen.len() as u64;
            if rng.percent(40) {
                self.check(&snapshot, &seen, rng.percent(50), "in a new snapshot");
            }
            if rng.percent(10) || last {
                self.check(&kept, &kept_done, rng.percent(50), "in an old snapshot");
            }
            if last {
                return calls;
            }
            std::thread::yield_now();
        }
    }

    fn disturb(&self, running: &AtomicUsize, rng: &mut Rng) -> u64 {
        let mut calls = 0;
        while running.load(SeqCst) > 0 {
            let (db, what) = (self.db, self.what);
            let bounds = || counters(0).map(|key| key.to_vec());
            let done = match rng.below(8) {
                0 | 1 => db.flush(),
                2 if rng.percent(50) => db.compact(),
                2 => self.rows.compact(),
                3 => {
                    let [from, _] = bounds();
                    self.rows.compact_range(from..vec![b'k', rng.next() as u8])
                }
                4 => db.sync(),
                5 => db.rebuild_filters(config::filters(rng)).map(|_| ()),
                6 => db.verify().map(|report| assert!(report.is_ok(), "{what}: {report:?}")),
                _ => db.wait_for_compaction(),
            };
            done.unwrap_or_else(|e| panic!("{what}: concurrently with the writers: {e}"));
            calls += 1;
        }
        calls
    }
}
