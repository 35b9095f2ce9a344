//! Counts the instructions of each operation of a store and compares them with those in `instructions.json`:
//!
//! ```sh
//! cargo run --release -p micro --bin instructions             # fails if a count has risen by more than 5 %
//! cargo run --release -p micro --bin instructions -- record   # writes the counts of today
//! ```
//!
//! Needs `valgrind`, whose tool callgrind does the counting. It runs this program again, once for each
//! operation, and counts while the program is in the function [`measured`]. Unlike times, counts hardly vary
//! between executions: only the store's hash seed and the state of its background threads differ. Callgrind
//! has no AVX-512, so filters are probed with AVX2.

#![expect(clippy::expect_used, reason = "a benchmark: a failure ends it")]

mod store_calls;

use serde_json::{Map, Value, json};
use sidebloom::{Batch, Compression, Db, FilterPolicy, Keyspace, KeyspaceOptions, Options, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::slice::Chunks;
use store_calls::{
    VALUE, count_rows, first, get, insert_new, insert_new_many, may_contain, may_contain_many, multi_get,
    put, range, scan, skip, write,
};

/// Keys in the deepest run, several segments of [`SEGMENT_BYTES`].
const KEYS: u64 = 300_000;
/// Keys in each run above it.
const UPPER_KEYS: u64 = 10_000;
/// Keyspaces besides that of the keys, and the rows of each.
const OTHERS: u64 = 100;
const OTHERS_KEYS: u64 = 2000;
const SEGMENT_BYTES: u64 = 4 << 20;
/// Keys of a store that was just written, each with an old version in the deepest run.
const WRITTEN_KEYS: u64 = 32_000;
/// Its four upper runs and its memtable each have a newer version of every fifth key. Four rows to a block.
const WRITTEN_VALUE: [u8; 1000] = [7; 1000];
/// Counted calls, after equally many that are not counted.
const CALLS: usize = 20_000;
/// The same for missing keys. A false positive reads a block, which costs far more than all else: with fewer
/// calls, the counts vary by 2 %.
const MISSING_CALLS: usize = 100_000;
const MULTI: usize = 64;
/// How much a count may rise before the comparison fails.
const TOLERANCE: f64 = 1.05;

/// An operation of the store with some number of sorted runs, and how often one call does it.
struct Operation {
    name: &'static str,
    store: Store,
    per_call: usize,
    calls: usize,
    /// Makes a call with these keys, or one with each of them.
    call: fn(&Db, &[Vec<u8>]),
    keys: Keys,
}

#[derive(Clone, Copy, PartialEq)]
enum Store {
    /// This many sorted runs, and empty memtables.
    Runs(u64),
    /// Two runs, and a memtable with as many keys as an upper run.
    Memtable,
    /// Two runs whose values are coded one by one, so that blocks are read in place. The others have LZ4.
    InPlace,
    /// Two runs, and [`OTHERS`] other keyspaces, each with a run in level 0.
    Others,
    /// Five runs and a memtable, with two versions of each key.
    Written,
}

#[derive(Clone, Copy)]
enum Keys {
    Missing,
    Present,
}

fn operations() -> Vec<Operation> {
    let one = |name, store, call, keys| Operation { name, store, per_call: 1, calls: CALLS, call, keys };
    let missing = |name, store| Operation { calls: MISSING_CALLS, ..one(name, store, get, Keys::Missing) };
    let many = |name, per_call, call, keys| {
        let calls = CALLS / per_call;
        Operation { name, store: Store::Runs(2), per_call, calls, call, keys }
    };
    let written = |name, calls, per_call, call| Operation {
        name,
        store: Store::Written,
        per_call,
        calls,
        call,
        keys: Keys::Present,
    };
    use Keys::{Missing, Present};
    use Store::{InPlace, Memtable, Others, Runs};
    vec![
        missing("get, missing, 1 run", Runs(1)),
        missing("get, missing, 2 runs", Runs(2)),
        missing("get, missing, 3 runs", Runs(3)),
        missing("get, missing, 4 runs", Runs(4)),
        missing("get, missing, 2 runs and a memtable", Memtable),
        missing("get, missing, 2 runs and 100 keyspaces", Others),
        one("may_contain, missing, 2 runs", Runs(2), may_contain, Missing),
        many("multi_get of 64, each missing key", MULTI, multi_get, Missing),
        many("may_contain_many of 64, each missing key", MULTI, may_contain_many, Missing),
        one("get, found, 2 runs", Runs(2), get, Present),
        one("get, found, 2 runs and 100 keyspaces", Others, get, Present),
        one("get, found, 2 runs in place", InPlace, get, Present),
        many("multi_get of 64, each found key", MULTI, multi_get, Present),
        Operation { calls: 100, ..one("range of 100 rows, 2 runs", Runs(2), range, Present) },
        Operation {
            calls: 1,
            per_call: KEYS as usize,
            ..one("scan, each row, 2 runs", Runs(2), scan, Present)
        },
        Operation {
            calls: 1,
            per_call: KEYS as usize,
            ..one("scan, each row, 2 runs in place", InPlace, scan, Present)
        },
        Operation {
            calls: 1,
            per_call: KEYS as usize,
            ..one("count, each row, 2 runs", Runs(2), count_rows, Present)
        },
        written("first 100 rows, just written", 100, 1, first),
        written("5,000 skipped and 100 rows, just written", 10, 1, skip),
        written("count, each row, just written", 1, WRITTEN_KEYS as usize, count_rows),
        written("multi_get of 64, each key, just written", 400, MULTI, multi_get),
        one("put", Runs(1), put, Missing),
        many("write of 100, each put", 100, write, Missing),
        // In stores to which nothing else was added before.
        one("insert_new, 3 runs", Runs(3), insert_new, Missing),
        Operation {
            store: Runs(4),
            ..many("insert_new_many of 100, 4 runs, each row", 100, insert_new_many, Missing)
        },
    ]
}

/// Present keys end in `+`, missing keys in `-`, of the same length and between present keys.
fn key(index: u64, present: bool) -> Vec<u8> {
    let spread = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    format!("user{spread:019}{}", if present { '+' } else { '-' }).into_bytes()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["measure", name, dir] => {
            let operations = operations();
            let operation = operations.iter().find(|operation| operation.name == name);
            measure(operation.expect("an operation"), Path::new(dir)).expect("a store");
            ExitCode::SUCCESS
        }
        ["load", runs, dir] => {
            let store = match runs {
                "written" => Store::Written,
                "in-place" => Store::InPlace,
                "others" => Store::Others,
                runs => Store::Runs(runs.parse().expect("a number of runs")),
            };
            load(store, Path::new(dir)).expect("a store");
            ExitCode::SUCCESS
        }
        [] => compare(&count_all("")),
        ["record"] => {
            let counts: Map<String, Value> = count_all("")
                .into_iter()
                .map(|(name, count)| (name.to_owned(), json!(count.round())))
                .collect();
            std::fs::write(record(), format!("{:#}\n", Value::Object(counts))).expect("a record");
            ExitCode::SUCCESS
        }
        ["only", part] => {
            count_all(part);
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: instructions [record | only PART-OF-A-NAME]");
            ExitCode::from(2)
        }
    }
}

fn record() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

/// Prints each count next to the recorded one. Fails if one has risen too far or is not recorded.
fn compare(counts: &BTreeMap<&'static str, f64>) -> ExitCode {
    let recorded = std::fs::read(record()).expect("the recorded counts");
    let recorded: BTreeMap<String, f64> = serde_json::from_slice(&recorded).expect("the recorded counts");
    let mut code = ExitCode::SUCCESS;
    for (name, &count) in counts {
        let limit = recorded.get(*name).map_or(0.0, |count| count * TOLERANCE);
        if count > limit {
            println!("TOO MANY: {name}: {count:.0}, more than {limit:.0}: 5 % above the record");
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// The instructions of each operation whose name has `part` in it.
fn count_all(part: &str) -> BTreeMap<&'static str, f64> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut counts = BTreeMap::new();
    for operation in operations().into_iter().filter(|operation| operation.name.contains(part)) {
        let store = dir.path().join(match operation.store {
            Store::Runs(runs) => format!("{runs}"),
            Store::Memtable => "memtable".to_owned(),
            Store::InPlace => "in-place".to_owned(),
            Store::Others => "others".to_owned(),
            Store::Written => operation.name.to_owned(), // Each closing flushes its memtable.
        });
        if !store.exists() {
            load(operation.store, &store).expect("a store");
        }
        let count = count(&operation, &store);
        println!("{count:8.0}  {}", operation.name);
        counts.insert(operation.name, count);
    }
    counts
}

/// Makes a store with this many sorted runs over the same key range.
fn load(store: Store, dir: &Path) -> Result<()> {
    let coded = (store == Store::InPlace).then_some(Compression::Fsst);
    let db = options().compression(coded.unwrap_or(Compression::Lz4)).open(dir)?;
    let runs = match store {
        Store::Runs(runs) => runs,
        Store::Memtable | Store::InPlace | Store::Others => 2,
        Store::Written => 5,
    };
    if store == Store::Written {
        fill(&db, 0..WRITTEN_KEYS, &WRITTEN_VALUE)?;
        db.compact()?;
        for run in 1..runs {
            fill(&db, updated(run), &WRITTEN_VALUE)?;
            db.flush()?;
        }
    } else {
        fill(&db, 0..KEYS, &VALUE)?;
        db.compact()?;
        for run in 1..runs {
            let first = KEYS + run * UPPER_KEYS;
            fill(&db, first..first + UPPER_KEYS, &VALUE)?;
            db.flush()?;
        }
    }
    let others = if store == Store::Others { OTHERS } else { 0 };
    for other in 0..others {
        // With bits of their own, so that the counted gets ask the same filters as without them.
        let own_bits = KeyspaceOptions::new().filter_policy(FilterPolicy::bits_per_key(10.0));
        let other = db.create_keyspace(&format!("{other}"), own_bits)?;
        fill(&other, 0..OTHERS_KEYS, &VALUE)?;
    }
    db.flush()?;
    db.wait_for_compaction()?;
    let levels = db.stats().levels;
    assert_eq!(levels.iter().map(|level| level.runs as u64).sum::<u64>(), runs, "sorted runs");
    assert!(levels.iter().map(|level| level.segments as u64).sum::<u64>() >= others);
    Ok(())
}

fn options() -> Options {
    Options::new().segment_bytes(SEGMENT_BYTES).hold_level0()
}

/// The keys that one of the upper runs, or run 0, the memtable, updates in a store that was just written.
fn updated(run: u64) -> impl Iterator<Item = u64> {
    (0..WRITTEN_KEYS).filter(move |index| index % 5 == run)
}

fn fill(keyspace: &Keyspace, keys: impl Iterator<Item = u64>, value: &[u8]) -> Result<()> {
    let mut batch = Batch::new();
    for index in keys {
        batch.keyspace(keyspace).put(key(index, true), value);
        if batch.len() == 1000 {
            keyspace.write(std::mem::take(&mut batch))?;
        }
    }
    keyspace.write(batch)
}

/// Runs [`measure`] under callgrind and returns the instructions counted for the operation.
fn count(operation: &Operation, store: &Path) -> f64 {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=instructions::measured*",
        ])
        .arg(program)
        .args(["measure", operation.name])
        .arg(store)
        .output()
        .expect("valgrind, which must be installed");
    let log = String::from_utf8_lossy(&output.stderr);
    let collected = log.lines().find_map(|line| line.split("Collected : ").nth(1));
    let collected =
        collected.filter(|_| output.status.success()).and_then(|count| count.trim().parse::<f64>().ok());
    collected.unwrap_or_else(|| panic!("callgrind failed: {log}"))
        / (operation.calls * operation.per_call) as f64
}

/// Makes the calls of an operation twice: the first calls fill the block cache, the second ones are counted.
fn measure(operation: &Operation, dir: &Path) -> Result<()> {
    let db = options().open(dir)?;
    db.warm()?;
    if operation.store == Store::Memtable {
        fill(&db, 2 * KEYS..2 * KEYS + UPPER_KEYS, &VALUE)?;
    }
    if operation.store == Store::Written {
        fill(&db, updated(0), &WRITTEN_VALUE)?;
    }
    let per_row = operation.name.contains("each row") && matches!(operation.keys, Keys::Present);
    let count = operation.calls * if per_row { 1 } else { operation.per_call };
    let keys_in_all = if operation.store == Store::Written { WRITTEN_KEYS } else { KEYS };
    let present = matches!(operation.keys, Keys::Present);
    let keys = |first: u64| -> Vec<Vec<u8>> {
        (0..count as u64).map(|index| key(first + index * 7919 % keys_in_all, present)).collect()
    };
    // Missing keys differ, so that false positives are as frequent as in reality. All keys are kept until the
    // end: the allocator would merge freed ones during the counted calls.
    let (first, second) = (keys(0), keys(if present { 0 } else { KEYS }));
    let at_once = if operation.per_call == 1 { count } else { operation.per_call.min(count) };
    calls(&db, operation.call, first.chunks(at_once));
    measured(&db, operation.call, second.chunks(at_once));
    Ok(())
}

fn calls<'k>(db: &Db, call: fn(&Db, &[Vec<u8>]), keys: impl Iterator<Item = &'k [Vec<u8>]>) {
    keys.for_each(|keys| call(db, keys));
}

/// What callgrind counts.
#[inline(never)]
fn measured(db: &Db, call: fn(&Db, &[Vec<u8>]), keys: Chunks<'_, Vec<u8>>) {
    calls(db, call, keys);
}
