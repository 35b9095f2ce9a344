//! What the writers of a schedule write, and so what a store must hold.

use crate::support::{Contents, Rng};
use sidebloom::Batch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Keys below this number exist; each belongs to the writer of its remainder.
pub const KEYS: u64 = 400;

/// A key, and its new value; `None` deletes it.
type Change = (Vec<u8>, Option<Vec<u8>>);

/// A writer's batches, decided by a seed. Batch `n` sets the writer's count to `n`. Writers' keys interleave.
#[derive(Debug)]
pub struct Writer {
    pub number: u64,
    writers: u64,
    batches: Vec<Vec<Change>>,
    pub handed_over: AtomicU64,
    pub acknowledged: AtomicU64,
    /// The last batch known to be durable.
    pub synced: AtomicU64,
    /// For each batch: how many batches of each writer were acknowledged when it was submitted.
    pub seen: Mutex<Vec<Vec<u64>>>,
}

/// What was known of a writer at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pub handed_over: u64,
    pub acknowledged: u64,
    pub synced: u64,
}

pub fn key(n: u64) -> Vec<u8> {
    format!("key{n:04}").into_bytes()
}

impl Writer {
    pub fn new(number: u64, writers: u64, batches: u64, rng: &mut Rng) -> Writer {
        let count = format!("count{number}").into_bytes();
        let batch = |n: u64, rng: &mut Rng| {
            let mut ops = vec![(count.clone(), Some(n.to_string().into_bytes()))];
            for _ in 0..rng.below(4) {
                let k = rng.below(KEYS / writers) * writers + number;
                let len = *rng.pick(&[0, 10, 100, 1200]);
                let value = (0..len).map(|at| (n + at * 7) as u8 ^ rng.next() as u8).collect();
                ops.push((key(k), (!rng.percent(30)).then_some(value)));
            }
            ops
        };
        let batches = (1..=batches).map(|n| batch(n, rng)).collect();
        let [handed_over, acknowledged, synced] = [0, 0, 0].map(AtomicU64::new);
        let seen = Mutex::new(Vec::new());
        Writer { number, writers, batches, handed_over, acknowledged, synced, seen }
    }

    pub fn count_key(&self) -> Vec<u8> {
        format!("count{}", self.number).into_bytes()
    }

    pub fn parse_count(value: Option<&[u8]>) -> u64 {
        value.map_or(0, |n| String::from_utf8_lossy(n).parse().unwrap())
    }

    pub fn len(&self) -> u64 {
        self.batches.len() as u64
    }

    pub fn batch(&self, n: u64) -> Batch {
        let mut batch = Batch::new();
        for (key, value) in &self.batches[n as usize - 1] {
            match value {
                Some(value) => batch.put(key, value),
                None if n.is_multiple_of(2) => batch.delete_range(key..=key),
                None => batch.delete(key),
            }
        }
        batch
    }

    /// The rows that a batch puts, in order of their keys; `None` if it deletes.
    pub fn rows(&self, n: u64) -> Option<Contents> {
        let changes = self.batches[n as usize - 1].iter();
        changes.map(|(key, value)| Some((key.clone(), value.clone()?))).collect()
    }

    pub fn known(&self) -> Known {
        Known {
            synced: self.synced.load(SeqCst),
            acknowledged: self.acknowledged.load(SeqCst),
            handed_over: self.handed_over.load(SeqCst),
        }
    }

    fn owns(&self, key: &[u8]) -> bool {
        let digits = |start: &str| {
            let rest = key.strip_prefix(start.as_bytes())?;
            String::from_utf8_lossy(rest).parse::<u64>().ok()
        };
        let is_mine = |n: u64| n < 1000 && n % self.writers == self.number;
        digits("count") == Some(self.number) || digits("key").is_some_and(is_mine)
    }

    /// This writer's rows in a store that holds `base` and the writer's first `n` batches.
    pub fn after(&self, base: &Contents, n: u64) -> Contents {
        let mut mine = self.part_of(base);
        for (key, value) in self.batches[..n as usize].iter().flatten() {
            match value {
                Some(value) => mine.insert(key.clone(), value.clone()),
                None => mine.remove(key),
            };
        }
        mine
    }

    fn part_of(&self, contents: &Contents) -> Contents {
        let mine = contents.iter().filter(|(key, _)| self.owns(key));
        mine.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// How many of the batches a store holds. Fails unless it holds these whole, and nothing of the others.
    #[track_caller]
    pub fn count_in(&self, found: &Contents, base: &Contents, what: &str) -> u64 {
        let count = Self::parse_count(found.get(&self.count_key()).map(Vec::as_slice));
        assert!(count <= self.len(), "{what}: {count} batches of writer {}", self.number);
        let (mine, expected) = (self.part_of(found), self.after(base, count));
        if mine != expected {
            let differs = |a: &Contents, b: &Contents| -> Vec<String> {
                let keys = a.iter().filter(|(key, value)| b.get(*key) != Some(*value)).map(|(key, _)| key);
                keys.map(|key| key.escape_ascii().to_string()).collect()
            };
            panic!(
                "{what}: writer {} after {count} batches: lost or old {:?}, wrong or returned {:?}",
                self.number,
                differs(&expected, &mine),
                differs(&mine, &expected)
            );
        }
        count
    }
}
