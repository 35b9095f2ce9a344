//! One life of a store, from its opening to its closing: threads use it, while images of the disk are taken
//! at its writing operations.

use super::plan::{Plan, mix};
use super::promises::{Promises, Told};
use super::{fates, keyspaces};
use crate::support::{Crash, Rng, STORE, SimFs};
use crate::{brief, config};
use sidebloom::{Db, Durability, Keyspace, Options};
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The disk at one moment, with all that a crash may still lose, and what was promised by then.
#[derive(Debug)]
pub struct Image {
    pub fs: SimFs,
    pub told: Told,
    /// The next operation.
    pub at: String,
}

/// A life to be lived.
#[derive(Debug)]
pub struct Life<'a> {
    pub plan: &'a Plan,
    pub number: u64,
    pub promises: Arc<Promises>,
    /// How many batches each writer adds.
    pub batches: u64,
    /// Percentage of writing operations at which images are taken.
    pub sample: u64,
}

impl Life<'_> {
    fn rng(&self, part: u64) -> Rng {
        Rng::new(mix(&[self.plan.seed, 4, self.number, part]))
    }

    /// Lives it on this disk. Returns the images, the last one of the closed store.
    pub fn live(&self, fs: &SimFs) -> Vec<Image> {
        let images = Arc::new(Mutex::new(Vec::new()));
        self.take_images(fs, &images);
        let mut rng = self.rng(0);
        let durability = *rng.pick(&[Durability::Os, Durability::Os, Durability::Os, Durability::Sync]);
        let threads = *rng.pick(&[3, 3, 4, 5, 8]);
        let options = config::random(&mut rng, Arc::new(fs.clone()));
        let mut options = options.durability(durability).background_threads(threads);
        if self.plan.has_filters {
            options = options.filter_policy(config::policy_with_filters(&mut rng));
        }
        self.use_store(options, durability, &mut rng);
        self.promises.synced(&self.promises.acknowledged()); // It is closed.
        let told = self.promises.now();
        let mut images = std::mem::take(&mut *images.lock().unwrap());
        images.push(Image { fs: fs.crash(Crash::Kill, 0), told, at: "after closing".into() });
        images
    }

    fn take_images(&self, fs: &SimFs, images: &Arc<Mutex<Vec<Image>>>) {
        let (images, promises) = (Arc::clone(images), Arc::clone(&self.promises));
        let (sample, seed) = (self.sample, mix(&[self.plan.seed, 5, self.number]));
        fs.watch(move |moment| {
            if Rng::new(mix(&[seed, moment.number()])).percent(sample) {
                // Nothing takes effect at this moment, so what was promised by now must be on this disk.
                let at = format!("{} {} {}", moment.number(), moment.kind.op(), moment.path.display());
                let image = Image { fs: moment.crash(Crash::Kill, 0), told: promises.now(), at };
                images.lock().unwrap().push(image);
            }
        });
    }

    fn use_store(&self, options: Options, durability: Durability, rng: &mut Rng) {
        let open = || options.clone().open(STORE).unwrap_or_else(|e| panic!("opening: {e}"));
        let mut db = open();
        if rng.percent(50) {
            // After a clean close, the first write does what the opening left undone.
            drop(db);
            db = open();
        }
        let rows = self.plan.home.of(&db).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let found = fates::find(&db, self.plan.home.name());
        self.promises.open(&found.unwrap_or_else(|e| panic!("{e}")));
        if self.plan.ingests && self.promises.now().must_ingest() {
            self.promises.begin_ingest();
            let ingested = self.plan.ingested();
            rows.ingest(ingested.iter().map(|(key, value)| Ok((key, value))))
                .unwrap_or_else(|e| panic!("ingest: {e}"));
            self.promises.finish_ingest();
        }
        let others = 1 + rng.below(3);
        std::thread::scope(|scope| {
            for writer in 0..self.plan.writers {
                let rows = &rows;
                scope.spawn(move || self.write(rows, writer, durability));
            }
            for other in 0..others {
                let (db, rows) = (&db, &rows);
                scope.spawn(move || self.disturb(db, rows, other));
            }
        });
        let found = self.plan.identify(rows.iter()).unwrap_or_else(|e| panic!("before closing: {e}"));
        assert_eq!(found.batches, self.promises.acknowledged(), "before closing");
    }

    fn write(&self, db: &Keyspace, writer: usize, durability: Durability) {
        let mut rng = self.rng(10 + writer as u64);
        let from = self.promises.acknowledged()[writer];
        for i in from + 1..=from + self.batches {
            let mut before = self.promises.hand_over(writer, i);
            let batch = self.plan.batch(db, writer, i);
            let rows = self.plan.puts(writer, i).filter(|_| rng.percent(15));
            let (durability, written) = match rows {
                // Ingested rows are durable, and so is everything acknowledged before.
                Some(rows) if rng.percent(50) => (Durability::Sync, db.ingest(rows.iter().map(Ok))),
                Some(rows) => (Durability::Sync, db.ingest_unsorted(rows.iter().rev().map(Ok))),
                None if rng.percent(25) => (durability, self.plan.transact(db, writer, i, durability)),
                None if rng.percent(20) => (Durability::Sync, db.write_with(batch, Durability::Sync)),
                None => (durability, db.write(batch)),
            };
            written.unwrap_or_else(|e| panic!("writer {writer}, batch {i}: {e}"));
            self.promises.acknowledge(writer, i);
            if durability == Durability::Sync {
                before[writer] = i;
                self.promises.synced(&before);
            }
            let key = self.plan.key(writer, rng.below(self.plan.keys));
            let value = db.get(&key).unwrap_or_else(|e| panic!("get: {e}"));
            let expected = self.plan.state(writer, i).rows.get(&key).map(|value| &**value);
            assert_eq!(value.as_deref(), expected, "key {} after batch {i}", key.escape_ascii());
            match rng.below(50) {
                0 | 1 => self.durably(|| db.sync()),
                2 => self.durably(|| db.flush()),
                3..18 => std::thread::sleep(Duration::from_micros(rng.below(600))),
                _ => {}
            }
        }
    }

    /// Calls something that makes everything durable that was acknowledged before.
    fn durably(&self, work: impl FnOnce() -> sidebloom::Result<()>) {
        let before = self.promises.acknowledged();
        work().unwrap_or_else(|e| panic!("sync, flush or compaction: {e}"));
        self.promises.synced(&before);
    }

    /// Calls what may run concurrently with writers.
    fn disturb(&self, db: &Db, rows: &Keyspace, other: u64) {
        let mut rng = self.rng(20 + other);
        for call in 0..2 + rng.below(4) {
            std::thread::sleep(Duration::from_micros(rng.below(1500)));
            match rng.below(20) {
                0 => self.durably(|| db.compact()),
                1 | 2 => self.durably(|| db.flush()),
                3 => self.durably(|| db.sync()),
                4 | 5 => {
                    let [a, b] = [0, 1].map(|_| {
                        self.plan.key(rng.below(self.plan.writers as u64) as usize, rng.below(self.plan.keys))
                    });
                    let range = (Bound::Included(a.clone().min(b.clone())), Bound::Included(a.max(b)));
                    rows.compact_range(range).unwrap_or_else(|e| panic!("compact_range: {e}"));
                }
                6 | 7 => {
                    let policy = config::policy_with_filters(&mut rng);
                    db.rebuild_filters(policy).unwrap_or_else(|e| panic!("rebuild_filters: {e}"));
                }
                8 | 9 => self.copy(db, other, call),
                10 | 11 => self.snapshot(rows, &mut rng),
                12..15 => keyspaces::change(
                    &self.promises,
                    db,
                    &format!("{} {call}.{other}", self.number),
                    &mut rng,
                ),
                15..18 => brief::write(db, &mut rng).unwrap_or_else(|e| panic!("a brief row: {e}")),
                18 => db.wait_for_compaction().unwrap_or_else(|e| panic!("wait_for_compaction: {e}")),
                _ => {
                    let report = db.verify().unwrap_or_else(|e| panic!("verify: {e}"));
                    assert!(report.is_ok(), "concurrently with writers: {:?}", report.problems);
                }
            }
        }
    }

    fn copy(&self, db: &Db, other: u64, call: u64) {
        let base = ["disk/copy", "copies/of the store/"][(self.number + call) as usize % 2];
        let dir = format!("{base}{}-{other}-{call}", self.number);
        let number = self.promises.begin_copy(&dir);
        db.checkpoint(&dir).unwrap_or_else(|e| panic!("checkpoint {dir}: {e}"));
        self.promises.finish_copy(number);
    }

    fn snapshot(&self, rows: &Keyspace, rng: &mut Rng) {
        let least = self.promises.acknowledged();
        let snapshot = rows.snapshot();
        let early = rng.percent(50).then(|| snapshot.iter());
        std::thread::sleep(Duration::from_micros(rng.below(2000)));
        let found = self.plan.identify(snapshot.iter()).unwrap_or_else(|e| panic!("snapshot: {e}"));
        self.promises.check_reader(&found, &least).unwrap_or_else(|e| panic!("snapshot: {e}"));
        if let Some(early) = early {
            let again = self.plan.identify(early).unwrap_or_else(|e| panic!("snapshot: {e}"));
            assert_eq!(again, found, "a snapshot read twice");
        }
    }
}
