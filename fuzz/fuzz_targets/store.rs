//! Operations on a whole store, on a simulated disk that crashes, compared with a `BTreeMap`. I2: a damaged
//! sidecar changes no answer. I4: after a crash the store holds a prefix of the writes, including everything
//! that was synced.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sidebloom::{Batch, Compression, Db, Durability, Error, FilterPolicy, Options, Residency, Snapshot};
use sidebloom_fuzz::disk::{Crash, SimFs};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// SimFs has no unnamed directory, so the store has a parent.
const STORE: &str = "disk/store";
const OPS: usize = 40;
/// The longest [`Op::Fill`]: several memtables full.
const FILL: u8 = 80;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// One of a few keys, so that they are overwritten often. Some are prefixes of others, one is empty.
#[derive(Debug, Arbitrary, Clone, Copy)]
struct Key(u8);

#[derive(Debug, Arbitrary, Clone, Copy)]
struct Write {
    key: Key,
    /// `None` deletes; otherwise the length of the value, in units of four bytes.
    value: Option<u8>,
}

#[derive(Debug, Arbitrary)]
enum Op {
    Write(Write),
    Batch(Vec<Write>),
    /// Consecutive keys with incompressible values, which fill memtables and levels.
    Fill {
        from: Key,
        count: u8,
        seed: u16,
    },
    Get(Key),
    MultiGet(Vec<Key>),
    Range {
        lower: Option<(Key, bool)>,
        upper: Option<(Key, bool)>,
        turns: u32,
    },
    Prefix(Key),
    Snapshot,
    LookAtSnapshot,
    Flush,
    Compact,
    Wait,
    Sync,
    RebuildFilters(u8),
    Reopen(Config),
    Crash {
        power: bool,
        ordered: bool,
        seed: u16,
        config: Config,
    },
    /// Changes a byte of a sidecar while the store is closed, or removes it.
    DamageSidecar {
        which: u8,
        at: u16,
        xor: u8,
    },
    Verify,
}

#[derive(Debug, Arbitrary, Clone, Copy)]
struct Config {
    sync: bool,
    cache: bool,
    lz4: bool,
    pinned: bool,
    /// Memtables and segments of 4 KiB, which soon make several levels, or of 16 KiB, which are faster.
    tiny: bool,
    filters: u8,
}

fn bytes_of(key: Key) -> Vec<u8> {
    match key.0 {
        0 => Vec::new(),
        1..=9 => vec![0xff; usize::from(key.0)],
        n => format!("key/{:02}{}", n / 4, "/x".repeat(usize::from(n % 4))).into_bytes(),
    }
}

/// Half of the value is noise.
fn value_of(units: u8, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let unit = |i: u8| {
        state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        if i % 2 == 0 { *b"aaaa" } else { (state as u32).to_le_bytes() }
    };
    (0..units).flat_map(unit).collect()
}

struct Run {
    fs: SimFs,
    /// `None` between close and reopen, since only one handle can hold the lock.
    db: Option<Db>,
    config: Config,
    model: Model,
    /// The durable state, and the batches since then.
    durable: Model,
    since: Vec<Vec<(Vec<u8>, Option<Vec<u8>>)>>,
    written: u64,
    snapshots: Vec<(Snapshot, Model)>,
}

fn apply(model: &mut Model, batch: &[(Vec<u8>, Option<Vec<u8>>)]) {
    for (key, value) in batch {
        match value {
            Some(value) => _ = model.insert(key.clone(), value.clone()),
            None => _ = model.remove(key),
        }
    }
}

fn open(fs: &SimFs, config: Config) -> Db {
    let bytes = if config.tiny { 4096 } else { 16 << 10 };
    Options::new()
        .memtable_bytes(bytes)
        .segment_bytes(bytes as u64)
        .block_bytes(256)
        .block_cache_bytes(if config.cache { 1 << 16 } else { 0 })
        .compression(if config.lz4 { Compression::Lz4 } else { Compression::None })
        .durability(if config.sync { Durability::Sync } else { Durability::Os })
        .residency(if config.pinned { Residency::Pinned } else { Residency::Mapped })
        .filter_policy(policy(config.filters))
        .filesystem(Arc::new(fs.clone()))
        .open(STORE)
        .unwrap()
}

fn policy(choice: u8) -> FilterPolicy {
    match choice % 16 {
        0 => FilterPolicy::OFF,
        n => FilterPolicy::bits_per_key(1.0 + f64::from(n)),
    }
}

fn contents(db: &Db) -> Model {
    db.iter().map(|kv| kv.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

impl Run {
    fn db(&self) -> &Db {
        self.db.as_ref().expect("the store is open")
    }

    fn write(&mut self, writes: &[Write]) {
        let mut batch = Batch::new();
        let mut kept = Vec::new();
        for write in writes {
            let key = bytes_of(write.key);
            self.written += 1;
            let value = write.value.map(|units| value_of(units, self.written));
            match &value {
                Some(value) => batch.put(&key, value),
                None => batch.delete(&key),
            }
            kept.push((key, value));
        }
        self.db().write(batch).unwrap();
        apply(&mut self.model, &kept);
        self.since.push(kept);
        if self.config.sync {
            self.synced();
        }
    }

    fn synced(&mut self) {
        self.since.drain(..).for_each(|batch| apply(&mut self.durable, &batch));
    }

    fn fill(&mut self, from: Key, count: u8, seed: u16) {
        for i in 0..count % FILL {
            let key = Key(from.0.wrapping_add(i));
            self.write(&[Write { key, value: Some((seed >> (i % 8)) as u8 | 15) }]);
        }
    }

    fn reopen(&mut self, config: Config, between: impl FnOnce(&SimFs)) {
        self.snapshots.clear();
        self.db = None;
        between(&self.fs);
        (self.db, self.config) = (Some(open(&self.fs, config)), config);
        assert_eq!(contents(self.db()), self.model, "after a reopening");
    }

    fn crash(&mut self, crash: Crash, seed: u16, config: Config) {
        let fs = self.fs.crash(crash, u64::from(seed));
        self.snapshots.clear();
        let db = open(&fs, config);
        let found = contents(&db);
        let mut prefix = self.durable.clone();
        let all = crash == Crash::Kill;
        let mut holds = found == prefix && (!all || self.since.is_empty());
        for (i, batch) in self.since.iter().enumerate() {
            apply(&mut prefix, batch);
            holds |= found == prefix && (!all || i + 1 == self.since.len());
        }
        assert!(holds, "after {crash:?} the store holds no prefix of what was written: {found:?}");
        (self.fs, self.db, self.config, self.model) = (fs, Some(db), config, found);
        (self.durable, self.since) = (self.model.clone(), Vec::new());
        self.db().sync().unwrap();
    }

    fn range(&self, lower: Option<(Key, bool)>, upper: Option<(Key, bool)>, mut turns: u32) {
        let bound = |bound: Option<(Key, bool)>| match bound {
            None => Bound::Unbounded,
            Some((key, true)) => Bound::Included(bytes_of(key)),
            Some((key, false)) => Bound::Excluded(bytes_of(key)),
        };
        let (lower, upper) = (bound(lower), bound(upper));
        let above = |key: &Vec<u8>| match &lower {
            Bound::Unbounded => true,
            Bound::Included(bound) => key >= bound,
            Bound::Excluded(bound) => key > bound,
        };
        let below = |key: &Vec<u8>| match &upper {
            Bound::Unbounded => true,
            Bound::Included(bound) => key <= bound,
            Bound::Excluded(bound) => key < bound,
        };
        let mut expected = self.model.iter().filter(|(key, _)| above(key) && below(key));
        let mut found = self.db().range((lower.clone(), upper.clone()));
        loop {
            turns = turns.rotate_right(1);
            let (found, expected) = match turns & 1 {
                0 => (found.next(), expected.next()),
                _ => (found.next_back(), expected.next_back()),
            };
            let found = found.map(|kv| kv.unwrap());
            assert_eq!(found.as_ref().map(|(key, value)| (key, &**value)), expected.map(|(k, v)| (k, &**v)));
            if found.is_none() {
                break;
            }
        }
    }

    fn step(&mut self, op: Op) {
        let (Some(db), model) = (&self.db, &self.model) else { return };
        let get = |key: &Key| model.get(&bytes_of(*key)).map(Vec::as_slice);
        match op {
            Op::Write(write) => self.write(&[write]),
            Op::Batch(writes) => self.write(&writes),
            Op::Fill { from, count, seed } => self.fill(from, count, seed),
            Op::Get(key) => assert_eq!(db.get(bytes_of(key)).unwrap().as_deref(), get(&key)),
            Op::MultiGet(keys) => {
                let asked: Vec<_> = keys.iter().map(|key| bytes_of(*key)).collect();
                let found = db.multi_get(&asked).unwrap();
                assert!(found.iter().map(Option::as_deref).eq(keys.iter().map(get)));
            }
            Op::Range { lower, upper, turns } => self.range(lower, upper, turns),
            Op::Prefix(key) => {
                let prefix = bytes_of(key);
                let found: Vec<_> = db.prefix(&prefix).map(|kv| kv.unwrap().0).collect();
                assert!(found.iter().eq(model.keys().filter(|key| key.starts_with(&prefix))));
            }
            Op::Snapshot => self.snapshots.push((db.snapshot(), model.clone())),
            Op::LookAtSnapshot => {
                let Some((snapshot, then)) = self.snapshots.pop() else { return };
                let found: Model =
                    snapshot.iter().map(|kv| kv.map(|(k, v)| (k, v.to_vec())).unwrap()).collect();
                assert_eq!(found, then, "a snapshot has changed");
            }
            Op::Flush => db.flush().unwrap(),
            Op::Compact => db.compact().unwrap(),
            Op::Wait => db.wait_for_compaction().unwrap(),
            Op::Sync => {
                db.sync().unwrap();
                self.synced();
            }
            Op::RebuildFilters(choice) => match (policy(choice), db.rebuild_filters(policy(choice))) {
                (FilterPolicy::OFF, rebuilt) => assert!(matches!(rebuilt, Err(Error::InvalidArgument(_)))),
                (_, rebuilt) => _ = rebuilt.unwrap(),
            },
            Op::Reopen(config) => self.reopen(config, |_| ()),
            Op::Crash { power, ordered, seed, config } => {
                let crash = match (power, ordered) {
                    (false, _) => Crash::Kill,
                    (true, true) => Crash::PowerOrdered,
                    (true, false) => Crash::Power,
                };
                self.crash(crash, seed, config);
            }
            Op::DamageSidecar { which, at, xor } => self.reopen(self.config, |fs| {
                let sidecars =
                    fs.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "filter"));
                let sidecars: Vec<_> = sidecars.collect();
                let Some(path) = sidecars.get(usize::from(which) % sidecars.len().max(1)) else { return };
                let Some(mut bytes) = fs.read(path) else { return };
                let at = usize::from(at) % bytes.len().max(1);
                match bytes.get_mut(at) {
                    Some(byte) if xor != 0 => *byte ^= xor,
                    _ => bytes.truncate(at),
                }
                fs.write(path, bytes);
            }),
            Op::Verify => {
                let report = db.verify().unwrap();
                assert!(report.is_ok(), "{report:?}");
            }
        }
    }
}

fuzz_target!(|input: (Config, Vec<Op>)| {
    let (config, ops) = input;
    let fs = SimFs::new();
    let db = Some(open(&fs, config));
    let (model, durable) = (Model::new(), Model::new());
    let (since, snapshots) = (Vec::new(), Vec::new());
    let mut run = Run { fs, db, config, model, durable, since, written: 0, snapshots };
    ops.into_iter().take(OPS).for_each(|op| run.step(op));
    assert_eq!(contents(run.db()), run.model, "at the end");
});
