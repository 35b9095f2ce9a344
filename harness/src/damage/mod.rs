//! Damages the files of random stores, one opening each. Every answer is right, or an error that names the
//! file and an offset in it (I6); damaged sidecars change nothing (I2); repair recovers the rest.

mod beside;
mod extreme_facts;
mod extremes;
mod formats;
mod harm;
mod logs;
mod reads;
mod repairs;
mod sidecars;
mod store;
mod workload;
mod wound;

use crate::harness::{Args, Counts, Harness};
use crate::support::{Contents, Rng, SimFs, contents, count_warnings};
use extremes::Extreme;
use reads::Reads;
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::{Kind, Store};
use wound::Wounds;

/// Damage cases per store.
const ATTEMPTS: u64 = 2500;
/// Absurd numbers per store.
const EXTREMES: u64 = 60;

pub fn harness(args: &Args) -> ExitCode {
    count_warnings();
    let floors = &[
        ("damages", 1_000_000),
        ("damages of logs", 100_000),
        ("damages of segments", 100_000),
        ("damages of manifests", 100_000),
        ("damages of sidecars", 50_000),
        ("enormous numbers", 20_000),
    ];
    Harness { name: "damage", short: 60, long: 470, floors }.run(args, |seed, counts: &Counts| {
        let store = Store::new(seed);
        let mut rng = Rng::new(seed ^ 0xda3a9e);
        let mut done = BTreeMap::<&'static str, u64>::new();
        for number in 0..ATTEMPTS {
            let mut attempt = Attempt { seed, number, store: &store, wounds: None };
            attempt.run(&mut rng, &mut done);
        }
        for _ in 0..EXTREMES {
            let Some(extreme) = Extreme::random(&mut rng, &store) else { continue };
            extreme.check(&store, &store.copy());
            *done.entry("enormous numbers").or_default() += 1;
        }
        *done.entry("stores").or_default() += 1;
        done.into_iter().for_each(|(what, n)| counts.add(what, n));
    })
}

/// Runs one damage case. Prints which one it was if it panics.
struct Attempt<'a> {
    seed: u64,
    number: u64,
    store: &'a Store,
    wounds: Option<Wounds<'a>>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let wounds = self.wounds.as_ref().map(ToString::to_string).unwrap_or_default();
            eprintln!("seed {}, damage {} of a store: {wounds}", self.seed, self.number);
        }
    }
}

type Done = BTreeMap<&'static str, u64>;

/// How a damaged store behaves when opened and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Error,
    Same,
    /// The unsynced end of the logs is lost.
    Prefix,
}

impl<'a> Attempt<'a> {
    fn run(&mut self, rng: &mut Rng, done: &mut Done) {
        let (kind, name) = match rng.below(100) {
            0..35 => (Kind::Log, "damages of logs"),
            35..68 => (Kind::Segment, "damages of segments"),
            68..92 => (Kind::Manifest, "damages of manifests"),
            _ => (Kind::Sidecar, "damages of sidecars"),
        };
        self.wounds = Wounds::random(rng, self.store, kind);
        let Some(wounds) = &self.wounds else { return };
        let fs = self.store.copy();
        wounds.inflict(&fs);
        let mut add = |what| *done.entry(what).or_default() += 1;
        add(name);
        let special = rng.below(100);
        if kind == Kind::Sidecar {
            match special {
                0..3 => sidecars::heals(self.store, wounds, &fs),
                _ => sidecars::read_only(rng, self.store, wounds, &fs),
            }
            return;
        }
        add("damages");
        let (outcome, found) = self.read_only(rng, wounds, &fs);
        add(match outcome {
            Outcome::Error => "errors",
            Outcome::Same => "same answers",
            Outcome::Prefix => "lost ends of logs",
        });
        match special {
            0..2 => {
                add("openings for writing");
                self.writable(wounds, &fs, found.as_ref());
            }
            2..4 => {
                add("repairs");
                let opened = if outcome == Outcome::Error { None } else { found.as_ref() };
                repairs::check(self.store, wounds, &fs, opened);
            }
            _ => {}
        }
    }

    /// Opens and reads the store. Also returns its contents, if they could be read.
    fn read_only(&self, rng: &mut Rng, wounds: &Wounds<'_>, fs: &SimFs) -> (Outcome, Option<Contents>) {
        let store = self.store;
        let options = store.options(fs).read_only(true).follow(rng.percent(50));
        let db = match options.open(&store.dir) {
            Ok(db) => db,
            Err(error) => {
                wounds.check(&error);
                return (Outcome::Error, None);
            }
        };
        let reads = Reads { db: &db, store, wounds, expected: &store.expected, may_fail: true };
        if wounds.kind == Kind::Log {
            let found = contents(&db);
            let allowed = logs::allowed(store, wounds);
            let is_prefix = || allowed.prefix.is_some_and(|n| store.after(n) == found);
            let outcome = match found == store.expected {
                true if allowed.whole || allowed.prefix.is_some() => Outcome::Same,
                false if is_prefix() => Outcome::Prefix,
                is_whole => {
                    panic!("opened without an error; all rows are there: {is_whole}; allowed: {allowed:?}")
                }
            };
            Reads { expected: &found, may_fail: false, ..reads }.around(rng);
            // The lost operations may be those of the keyspace alone.
            let all = (outcome == Outcome::Same && allowed.whole).then_some(store.ops.len());
            let ops =
                Vec::from_iter(all.into_iter().chain(allowed.prefix.map(|n| store.at_least_flushed(n))));
            store.beside.check_any(&db, &ops).unwrap_or_else(|error| panic!("the keyspace: {error}"));
            return (outcome, Some(found));
        }
        let must_fail = wounds.kind == Kind::Manifest && !wounds.others_too;
        assert!(!must_fail, "a manifest with a wrong checksum was accepted");
        let mut failed = reads.around(rng);
        if let Err(error) = store.beside.check(&db, store.ops.len()) {
            wounds.check(&error);
            failed = true;
        }
        if rng.percent(6) {
            reads.verify();
        }
        if failed {
            (Outcome::Error, Some(store.expected.clone()))
        } else {
            (Outcome::Same, Some(store.expected.clone()))
        }
    }

    /// Opens the store for writing, writes, compacts and reopens it. `found` are its contents, if it opens.
    fn writable(&self, wounds: &Wounds<'_>, fs: &SimFs, found: Option<&Contents>) {
        let store = self.store;
        let db = match (store.options(fs).open(&store.dir), found) {
            (Ok(db), Some(_)) => db,
            (Ok(_), None) => panic!("it opens for writing, but not read-only"),
            (Err(error), _) => {
                wounds.check(&error);
                let is_left = |wound: &wound::Wound<'_>| fs.read(&wound.victim.path) == wound.harm.bytes;
                // A manifest that is valid, but not the right one, is rewritten as one snapshot.
                let may_change = wounds.kind == Kind::Manifest && wounds.others_too;
                assert!(
                    may_change || wounds.all.iter().all(is_left),
                    "a failed opening changed a damaged file"
                );
                return;
            }
        };
        let mut expected = found.cloned().unwrap_or_default();
        let may_fail = wounds.kind != Kind::Log;
        Reads { db: &db, store, wounds, expected: &expected, may_fail }.all();
        db.put(b"a new key", b"new").unwrap();
        expected.insert(b"a new key".to_vec(), b"new".to_vec());
        if let Err(error) = db.compact() {
            let text = error.to_string();
            let is_named = |wound: &wound::Wound<'_>| text.contains(&wound.victim.path.display().to_string());
            let says_where = wounds.others_too || wounds.all.iter().any(is_named);
            assert!(may_fail && says_where && text.contains("offset"), "compaction failed: {text}");
        }
        Reads { db: &db, store, wounds, expected: &expected, may_fail }.all();
        drop(db);
        match store.options(fs).read_only(true).open(&store.dir) {
            Ok(db) => _ = Reads { db: &db, store, wounds, expected: &expected, may_fail }.all(),
            Err(error) => panic!("cannot open the store again: {error}"),
        }
    }
}
