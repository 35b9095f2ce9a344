//! Writers that record what they did, for the test of everything at once.

use crate::support::{Contents, Rng, SimFs, tiny_on};
use sidebloom::{Db, Error, FilterPolicy, KeyHash, Options, Residency};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};

pub const WRITERS: u64 = 2;
pub const KEYS: u64 = 500;

#[derive(Clone, Debug)]
pub struct Op {
    pub changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub ok: bool,
}

/// The history of one writer, in order. Operation `i` (from 1) sets the writer's key `count` to `i`.
#[derive(Clone, Debug)]
pub struct History {
    pub writer: u64,
    pub base: Contents,
    pub ops: Vec<Op>,
    /// The number of the operation before the first of `ops`.
    pub from: u64,
    /// All operations up to this number were synced.
    pub synced: u64,
}

impl History {
    pub fn prefix(&self) -> Vec<u8> {
        format!("t{}/", self.writer).into_bytes()
    }

    pub fn count_key(&self) -> Vec<u8> {
        format!("t{}/count", self.writer).into_bytes()
    }

    /// The contents after operation `i`: the effect of every successful operation up to it.
    pub fn after(&self, i: u64) -> Contents {
        let mut contents = self.base.clone();
        let last = (i - self.from) as usize;
        for (at, op) in self.ops[..last].iter().enumerate() {
            if op.ok || at + 1 == last {
                apply(&mut contents, op);
            }
        }
        contents
    }

    pub fn last_ok(&self) -> u64 {
        self.ops.iter().rposition(|op| op.ok).map_or(self.from, |at| self.from + at as u64 + 1)
    }

    /// Checks what a reopening found, and continues from there. It must have operations up to `least`.
    pub fn check_found(&mut self, found: &Contents, least: u64, what: &str) {
        let prefix = self.prefix();
        let mine: Contents = found
            .iter()
            .filter(|(k, _)| k.starts_with(&prefix))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let count = mine.get(&self.count_key()).map_or(0, |n| String::from_utf8_lossy(n).parse().unwrap());
        assert!(count >= least, "{what}: writer {} has {count}, {least} must be there", self.writer);
        assert!(count <= self.from + self.ops.len() as u64, "{what}: writer {} has {count}", self.writer);
        let expected = self.after(count);
        if mine != expected {
            let lost: Vec<_> = expected
                .iter()
                .filter(|(k, v)| mine.get(*k) != Some(*v))
                .map(|(k, v)| (k.escape_ascii().to_string(), v.len(), mine.get(k).map(Vec::len)))
                .collect();
            let extra: Vec<_> = mine
                .keys()
                .filter(|k| !expected.contains_key(*k))
                .map(|k| k.escape_ascii().to_string())
                .collect();
            panic!("{what}: writer {} after {count}: wrong {lost:?}, resurrected {extra:?}", self.writer);
        }
    }

    pub fn go_on_from(&mut self, found: &Contents) {
        let prefix = self.prefix();
        self.base = found
            .iter()
            .filter(|(k, _)| k.starts_with(&prefix))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        self.from =
            self.base.get(&self.count_key()).map_or(0, |n| String::from_utf8_lossy(n).parse().unwrap());
        self.synced = self.from;
        self.ops.clear();
    }
}

/// Fails with a short message.
#[track_caller]
pub fn same(found: &Contents, expected: &Contents, what: &str) {
    let differs = |a: &Contents, b: &Contents| -> Vec<String> {
        let other = a.iter().filter(|(k, v)| b.get(*k) != Some(*v));
        other.map(|(k, _)| k.escape_ascii().to_string()).take(20).collect()
    };
    let (wrong, missing) = (differs(found, expected), differs(expected, found));
    assert!(
        wrong.is_empty() && missing.is_empty(),
        "{what}: wrong or too many {wrong:?}, lost or wrong {missing:?}"
    );
}

pub fn apply(contents: &mut Contents, op: &Op) {
    for (key, value) in &op.changes {
        match value {
            Some(value) => contents.insert(key.clone(), value.clone()),
            None => contents.remove(key),
        };
    }
}

pub fn options(fs: &SimFs, rng: &mut Rng) -> Options {
    let mut options = tiny_on(fs)
        .background_threads(*rng.pick(&[2, 3, 4, 8]))
        .max_open_files(8)
        .max_mapped_filters(*rng.pick(&[8, 1000]))
        .block_cache_bytes(*rng.pick(&[0, 1 << 20]))
        .key_hash(*rng.pick(&[KeyHash::Xxh3, KeyHash::SipHash13]))
        .residency(*rng.pick(&[Residency::Mapped, Residency::Pinned]));
    if rng.percent(20) {
        options = options.filter_policy(FilterPolicy::OFF);
    }
    if rng.percent(20) {
        options = options.memtable_bytes(64 << 10);
    }
    options
}

/// Accepts only errors that the planned faults explain, and a poisoned store only where allowed.
#[track_caller]
pub fn allowed(error: &Error, faults: bool) {
    let is_io = matches!(error, Error::Io { .. })
        || MAY_STOP.with(|may| may.get()) && matches!(error, Error::Poisoned { .. });
    assert!(is_io && faults, "{error} ({error:?})");
}

thread_local!(pub static MAY_STOP: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });

pub struct Shared {
    pub may_stop: bool,
    pub db: Db,
    pub fs: SimFs,
    /// Whether faults may have been planned since the last call.
    pub faults: AtomicBool,
    pub done: AtomicU64,
    pub histories: Vec<Mutex<History>>,
    pub salt: u64,
}
