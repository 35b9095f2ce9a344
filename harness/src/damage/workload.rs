//! Random stores to damage: small, with every feature, and with known contents.

use super::beside::Beside;
use crate::config;
use crate::contents::{Change, Span, add_to, batch_of};
use crate::support::{Contents, Crash, OpKind, Rng, SimFs, TestClock};
use sidebloom::{Batch, Db, Durability, Expiry, FilterPolicy, Options};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

/// The names and bytes of all files at some moment.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The time of day at which the store is built and read, in milliseconds since 1970. Below 1000, no log says
/// the time, which would take a sequence number.
const FIRST_MILLIS: u64 = 100;
const LAST_MILLIS: u64 = 900;

/// Operation `i` has sequence number `i + 1`.
pub type Op = Change;

/// A store as its workload left it.
#[derive(Debug)]
pub struct Built {
    pub options: Options,
    /// Whether the options ask for filters.
    pub has_filters: bool,
    pub files: Files,
    /// Earlier states of the same store, the oldest first.
    pub earlier: Vec<Files>,
    /// Rows that were ingested before the first operation.
    pub ingested: Contents,
    pub ops: Vec<Op>,
    pub beside: Beside,
}

/// The shape of keys and values.
struct Shape {
    style: u64,
    keys: u64,
    gap: u64,
    long: Vec<u8>,
    huge_percent: u64,
    deletes_ranges: bool,
}

impl Shape {
    fn random(rng: &mut Rng) -> Shape {
        let long = (0..20 + rng.below(160)).map(|i| b'a' + (i % 26) as u8).collect();
        let huge_percent = *rng.pick(&[0, 0, 1, 1, 3]);
        let keys = *rng.pick(&[30, 100, 100, 300]);
        let deletes_ranges = rng.percent(70);
        Shape {
            style: rng.below(5),
            keys,
            gap: *rng.pick(&[1, 1, 7, 1000]),
            long,
            huge_percent,
            deletes_ranges,
        }
    }

    fn key(&self, rng: &mut Rng) -> Vec<u8> {
        let n = rng.below(self.keys) * self.gap;
        let style = if self.style == 4 { n % 4 } else { self.style };
        match style {
            0 => format!("key{n:06}").into_bytes(),
            1 => [self.long.as_slice(), &n.to_be_bytes()].concat(),
            2 => n.to_be_bytes().to_vec(),
            _ => vec![(n % 251) as u8; (n % 11) as usize], // Some are empty.
        }
    }

    fn value(&self, rng: &mut Rng) -> Vec<u8> {
        if rng.percent(self.huge_percent) {
            let len = 3000 + rng.below(30_000);
            return (0..len).map(|at| if at % 3 == 0 { rng.next() as u8 } else { 7 }).collect();
        }
        match rng.below(12) {
            0 => Vec::new(),
            1 => vec![0; 400 + rng.below(1200) as usize],
            2..5 => vec![rng.next() as u8; rng.below(200) as usize],
            5..11 => (0..rng.below(60)).map(|_| rng.next() as u8).collect(),
            _ => (0..rng.below(600)).map(|_| rng.next() as u8).collect(),
        }
    }
}

impl Shape {
    fn op(&self, rng: &mut Rng) -> Op {
        let key = self.key(rng);
        match rng.below(100) {
            0..20 => Change::Delete(key),
            20..27 if self.deletes_ranges => Change::DeleteSpan(self.span(rng, key)),
            _ => Change::Put(key, self.value(rng)),
        }
    }

    /// Mostly a few keys: with more, too little would be damaged.
    fn span(&self, rng: &mut Rng, key: Vec<u8>) -> Span<Vec<u8>> {
        if rng.percent(20) {
            return Span::only(key);
        }
        if rng.percent(2) {
            return Span::Range(Bound::Included(key), Bound::Unbounded);
        }
        let near = (0..8).map(|_| self.key(rng)).filter(|other| *other > key).min();
        let end = near.map_or(Bound::Included(key.clone()), Bound::Excluded);
        Span::Range(Bound::Included(key), end)
    }
}

/// A store that is being filled.
struct Filling {
    fs: SimFs,
    dir: PathBuf,
    options: Options,
    shape: Shape,
    ops: Vec<Op>,
    clock: Arc<TestClock>,
    /// Whether rows expire.
    expires: bool,
    /// `None` in stores without keyspaces.
    beside: Option<Beside>,
}

impl Filling {
    fn open(&self) -> Db {
        self.options.clone().open(&self.dir).unwrap()
    }

    fn write(&mut self, rng: &mut Rng, db: &Db, batches: u64) {
        for _ in 0..batches {
            let ops: Vec<Op> = (0..1 + rng.below(5)).map(|_| self.shape.op(rng)).collect();
            let batch = if self.expires { expiring_batch(rng, db, &ops) } else { batch_of(db, &ops) };
            self.ops.extend(ops);
            let durability = *rng.pick(&[Durability::Os, Durability::Os, Durability::Os, Durability::Sync]);
            db.write_with(batch, durability).unwrap();
            if let Some(beside) = self.beside.as_mut().filter(|_| rng.percent(4)) {
                beside.change(db, &mut self.ops);
            }
        }
    }

    fn rearrange(&mut self, rng: &mut Rng, db: &Db) {
        let (a, b) = (self.shape.key(rng), self.shape.key(rng));
        match rng.below(10) {
            0..4 => db.flush().unwrap(),
            4 | 5 => db.compact().unwrap(),
            6 | 7 => db.compact_range(a.clone().min(b.clone())..=a.max(b)).unwrap(),
            _ => {
                db.rebuild_filters(config::filters(rng)).unwrap();
            }
        }
    }

    /// Writes while no flush can end, so that there are several logs.
    fn fill_logs(&mut self, rng: &mut Rng, db: &Db) {
        self.write(rng, db, 1); // The first write after an open renames the manifest.
        // During a flush, writers would soon wait for it.
        db.wait_for_compaction().unwrap();
        let held = [self.fs.hold(OpKind::Open), self.fs.hold(OpKind::Rename)];
        let logs = || self.fs.files().iter().filter(|path| is_kind(path, "wal")).count();
        let before = logs();
        for _ in 0..200 {
            if logs() > before {
                break;
            }
            let mut batch = Batch::new();
            let (key, value) = (self.shape.key(rng), vec![rng.next() as u8; 200]);
            batch.put(&key, &value);
            db.write_with(batch, *rng.pick(&[Durability::Os, Durability::Os, Durability::Sync])).unwrap();
            self.ops.push(Change::Put(key, value));
        }
        let mut left = 2000;
        for _ in 0..rng.below(8) {
            let (key, value) = (self.shape.key(rng), self.shape.value(rng));
            if value.len() + key.len() > left {
                break;
            }
            left -= value.len() + key.len();
            db.put(&key, &value).unwrap();
            self.ops.push(Change::Put(key, value));
        }
        self.fs = self.fs.crash(Crash::Kill, 0);
        drop(held);
    }

    fn files(&self) -> Files {
        files_of(&self.fs.crash(Crash::Kill, 0))
    }

    /// The files when the process is killed during a flush or a compaction, after the last write.
    fn killed_while_rearranging(&self, rng: &mut Rng, db: &Db) -> Files {
        let (left, killed) = (AtomicU64::new(rng.below(60)), Arc::new(OnceLock::new()));
        let image = Arc::clone(&killed);
        self.fs.watch(move |moment| {
            if left.fetch_sub(1, Relaxed) == 0 {
                _ = image.set(files_of(&moment.crash(Crash::Kill, 0)));
            }
        });
        let done = match rng.below(3) {
            0 => db.flush(),
            1 => db.compact(),
            _ => db.wait_for_compaction(),
        };
        done.unwrap();
        killed.get().cloned().unwrap_or_else(|| self.files())
    }
}

/// A batch of the operations, where some rows expire long after the store is read. Some deletions are rows
/// that have expired by then.
fn expiring_batch(rng: &mut Rng, db: &Db, ops: &[Op]) -> Batch {
    let at = |millis| Expiry::at(UNIX_EPOCH + Duration::from_millis(millis));
    let mut batch = Batch::new();
    let mut of_rows = batch.keyspace(db);
    for op in ops {
        match op {
            Change::Put(key, value) if rng.percent(50) => {
                let after = *rng.pick(&[1, 1000, 100 * 365 * 24 * 3_600_000]);
                of_rows.put_with(key, value, at(LAST_MILLIS + 1 + rng.below(after)));
            }
            Change::Delete(key) if rng.percent(70) => {
                of_rows.put_with(key, "has expired", at(1 + rng.below(LAST_MILLIS)));
            }
            op => add_to(&mut of_rows, std::slice::from_ref(op)),
        }
    }
    batch
}

fn files_of(fs: &SimFs) -> Files {
    fs.files().into_iter().filter_map(|path| Some((path.clone(), fs.read(&path)?))).collect()
}

pub fn is_kind(path: &Path, ending: &str) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(ending))
}

/// Builds the store of a seed in directory `dir` of its own disk.
pub fn build(seed: u64, dir: &Path) -> Built {
    let mut rng = Rng::new(seed);
    let fs = SimFs::new();
    // Every segment has a filter, or none has.
    let policy = if rng.percent(15) { FilterPolicy::OFF } else { config::policy_with_filters(&mut rng) };
    let clock = Arc::new(TestClock::new());
    clock.set_back(Duration::from_millis(clock.millis() - FIRST_MILLIS));
    let options = config::random(&mut rng, Arc::new(fs.clone())).filter_policy(policy);
    let options = options.clock(Arc::clone(&clock) as _);
    let has_filters = policy.is_on();
    let shape = Shape::random(&mut rng);
    let beside = seed.is_multiple_of(2).then(|| Beside::new(seed.is_multiple_of(4)));
    let (dir, ops, expires) = (dir.to_path_buf(), Vec::new(), seed % 4 < 2);
    let mut filling = Filling { fs, dir, options, shape, ops, clock, expires, beside };
    let mut db = filling.open();
    let mut ingested = Contents::new();
    if rng.percent(30) {
        let keys = (0..rng.below(80)).map(|_| filling.shape.key(&mut rng)).collect::<Vec<_>>();
        ingested = keys.into_iter().map(|key| (key, filling.shape.value(&mut rng))).collect();
        db.ingest(ingested.iter().map(Ok)).unwrap();
        filling.ops.push(Change::Delete(b"takes the number of the ingestion".to_vec()));
    }
    let mut earlier = Vec::new();
    // Sometimes nothing is written after an ingestion, so that no flush follows it.
    let rounds = if !ingested.is_empty() && rng.percent(50) { 0 } else { 1 + rng.below(4) };
    for _ in 0..rounds {
        let batches = 5 + rng.below(60);
        filling.write(&mut rng, &db, batches);
        if expires {
            filling.clock.advance(Duration::from_millis(rng.below(200)));
        }
        filling.rearrange(&mut rng, &db);
        earlier.push(filling.files());
        if rng.percent(20) {
            drop(db);
            earlier.push(filling.files());
            db = filling.open();
        }
    }
    if rng.percent(60) {
        db.flush().unwrap();
    }
    db.wait_for_compaction().unwrap();
    earlier.push(filling.files());
    let tail = *rng.pick(&[0, 5, 20, 60]);
    filling.write(&mut rng, &db, tail);
    if rng.percent(50) {
        db.wait_for_compaction().unwrap();
    }
    // What the store does after its files are taken is lost with the process.
    let files = match rng.below(10) {
        0..3 => {
            filling.fill_logs(&mut rng, &db);
            filling.files()
        }
        3..6 => {
            drop(db);
            filling.files()
        }
        6..8 => filling.killed_while_rearranging(&mut rng, &db),
        _ => filling.files(),
    };
    filling.clock.advance(Duration::from_millis(LAST_MILLIS - filling.clock.millis()));
    let beside = filling.beside.unwrap_or_default();
    Built { options: filling.options, has_filters, files, earlier, ingested, ops: filling.ops, beside }
}
