//! Stores so small that a few writes keep flush and compaction busy, on a real or a simulated disk.

use super::rng::Rng;
use super::sim_fs::SimFs;
use sidebloom::{Batch, Db, Error, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Where the store is on a simulated disk.
pub const STORE: &str = "disk/store";

/// The contents of a store.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Memtables of a few entries, segments of a few blocks, and no block cache, so every read that no filter
/// answers reads a file.
pub fn tiny() -> Options {
    Options::new().memtable_bytes(4096).segment_bytes(4096).block_bytes(256).block_cache_bytes(0)
}

/// A tiny store on a simulated disk.
pub fn tiny_on(fs: &SimFs) -> Options {
    tiny().filesystem(Arc::new(fs.clone()))
}

/// All keys and values, by iteration from the front.
pub fn contents(db: &Db) -> Contents {
    db.iter().map(|kv| kv.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

/// Fills a tiny store with keys and tombstones in at least three levels, two of them not empty, whose ages
/// interleave. Returns its contents.
pub fn fill_deep(db: &Db, seed: u64) -> Contents {
    let mut rng = Rng::new(seed);
    let mut expected = Contents::new();
    for i in 0..20_000u64 {
        // Continue if the threads happened to compact everything into one level.
        if i >= 9000 && i % 500 == 0 && is_deep_at_rest(db) {
            return expected;
        }
        let key = format!("key{:05}", rng.below(3000)).into_bytes();
        if i > 2000 && rng.percent(30) {
            db.delete(&key).unwrap();
            expected.remove(&key);
        } else {
            // Does not compress.
            let value: Vec<u8> = (0..5).flat_map(|_| rng.next().to_le_bytes()).collect();
            db.put(&key, &value).unwrap();
            expected.insert(key, value);
        }
    }
    panic!("too few levels: {:?}", db.stats().levels);
}

/// Whether the store has three levels or more, two of them not empty, after its compactions.
fn is_deep_at_rest(db: &Db) -> bool {
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let levels = db.stats().levels;
    levels.len() >= 3 && levels.iter().filter(|level| level.segments > 0).count() >= 2
}

/// Checks every kind of read against `expected`, the whole contents, and looks up missing keys.
pub fn assert_holds(db: &Db, expected: &Contents) {
    assert_eq!(&contents(db), expected, "forwards");
    let backwards: Contents = db.iter().rev().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
    assert_eq!(&backwards, expected, "backwards");
    for (key, value) in expected {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()), "{}", key.escape_ascii());
        let absent = [key.as_slice(), b"?"].concat();
        let absent_value = expected.get(&absent).map(Vec::as_slice);
        assert_eq!(db.get(&absent).unwrap().as_deref(), absent_value, "{}", absent.escape_ascii());
    }
}

/// The file and the offset that a corruption error names.
#[track_caller]
pub fn damage_of(error: &Error) -> (String, u64) {
    match error {
        Error::Corruption { file, offset, .. } => (file.display().to_string(), *offset),
        Error::UnsupportedVersion { file, .. } => (file.display().to_string(), 0),
        Error::UnknownCode { file, offset, .. } => (file.display().to_string(), *offset),
        other => panic!("expected an error that names file and offset, not: {other}"),
    }
}

/// Polls until `done`, for at most a minute.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(60), "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs `work` in a thread and fails if it takes longer than a minute, because something waits that must not.
#[track_caller]
pub fn promptly<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(work()));
    match receive.recv_timeout(Duration::from_secs(60)) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => panic!("{what} waits"),
        Err(RecvTimeoutError::Disconnected) => panic!("{what} failed"),
    }
}

/// A sequence of batches decided by a seed, so the contents after any number of batches are known. Batch `i`
/// sets the key `count` to `i`, which tells how many batches a store has.
#[derive(Debug, Clone, Copy)]
pub struct Sequence(pub u64);

impl Sequence {
    const COUNT: &[u8] = b"count";

    fn ops(self, i: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut rng = Rng::new(self.0 ^ (i << 20));
        let mut ops = vec![(Self::COUNT.to_vec(), Some(i.to_string().into_bytes()))];
        for _ in 0..rng.below(6) {
            let key = format!("key{:03}", rng.below(60)).into_bytes();
            let len = if rng.percent(5) { rng.below(3000) } else { rng.below(60) };
            let value = (0..len).map(|at| (i + at) as u8).collect();
            ops.push((key, (!rng.percent(30)).then_some(value)));
        }
        ops
    }

    /// Batch number `i`, from 1.
    pub fn batch(self, i: u64) -> Batch {
        let mut batch = Batch::new();
        for (key, value) in self.ops(i) {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch
    }

    /// The contents of a store after the first `n` batches.
    pub fn after(self, n: u64) -> Contents {
        let mut contents = Contents::new();
        for (key, value) in (1..=n).flat_map(|i| self.ops(i)) {
            match value {
                Some(value) => contents.insert(key, value),
                None => contents.remove(&key),
            };
        }
        contents
    }

    /// How many batches the store has. Checks that its contents are exactly these first batches.
    #[track_caller]
    pub fn prefix_of(self, db: &Db) -> u64 {
        let found = contents(db);
        let count = found.get(Self::COUNT).map_or(0, |n| String::from_utf8_lossy(n).parse().unwrap());
        assert_eq!(found, self.after(count), "the store is not what {count} whole batches make");
        count
    }
}
