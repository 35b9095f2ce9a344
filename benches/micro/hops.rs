//! The files and functions that one call crosses: a `get` of a missing key, a `get` of a found key, a `put`.
//!
//! ```sh
//! cargo run -p micro --bin hops --config profile.dev.opt-level=0      # optimizing would inline functions
//! ```
//!
//! Needs `valgrind`, whose tool callgrind records which function calls which, and `c++filt`. Callgrind runs
//! this program once for each operation, and records while the program is in the function [`measured`]. Each
//! function is listed once, where the call graph first reaches it; calls are followed in the order of the
//! code. Background threads are left out. Of an `inline(always)` function, only the file is known. Callgrind
//! has no AVX-512, so filters are probed with AVX2.

#![expect(clippy::expect_used, reason = "a tool for developers: a failure ends it")]

use sidebloom::filter::Verdict;
use sidebloom::{Batch, Db, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// Keys in each of the two runs, enough for several blocks.
const KEYS: u64 = 2_000;
const VALUE: [u8; 100] = [7; 100];
/// The sources whose functions are listed.
const SOURCES: [&str; 2] = ["src/", "crates/filter/src/"];
/// Stands for functions whose names were lost.
const INLINED: &str = "(inlined)";

struct Operation {
    name: &'static str,
    call: fn(&Db, &[u8]),
    /// The key of a call that is not recorded, and of the recorded call.
    keys: fn(&Db) -> [Vec<u8>; 2],
}

fn get(db: &Db, key: &[u8]) {
    drop(black_box(db.get(key).expect("an answer")));
}

fn put(db: &Db, key: &[u8]) {
    db.put(key, VALUE).expect("a write");
}

/// Two keys that every filter denies.
fn missing(db: &Db) -> [Vec<u8>; 2] {
    let mut keys = (0..).map(|index| key(index, false)).filter(|key| db.may_contain(key) == Verdict::Absent);
    std::array::from_fn(|_| keys.next().expect("a key"))
}

fn operations() -> [Operation; 4] {
    [
        Operation { name: "get, missing", call: get, keys: missing },
        Operation {
            name: "get, found, its block read",
            call: get,
            keys: |_| [key(1, true), key(KEYS / 2, true)],
        },
        Operation { name: "get, found, its block cached", call: get, keys: |_| [key(1, true), key(1, true)] },
        Operation { name: "put", call: put, keys: |_| [key(1, false), key(2, false)] },
    ]
}

/// Present keys end in `+`, missing keys in `-`, so missing keys sort between present keys.
fn key(index: u64, present: bool) -> Vec<u8> {
    format!("user{index:019}{}", if present { '+' } else { '-' }).into_bytes()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, dir] = &arguments[..] {
        let operation = operations().into_iter().find(|operation| operation.name == *name);
        return measure(&operation.expect("an operation"), Path::new(dir)).expect("a store");
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = dir.path().join("store");
    load(&store).expect("a store");
    for operation in operations() {
        let record = record(&operation, &store, &dir.path().join("record"));
        Graph::parse(&record).print(operation.name);
    }
}

/// Makes a store with two runs.
fn load(dir: &Path) -> Result<()> {
    let db = Db::open(dir)?;
    for run in [1, 2] {
        let mut batch = Batch::new();
        (0..KEYS).for_each(|index| batch.put(key(index * run, true), VALUE));
        db.write(batch)?;
        if run == 1 {
            db.compact()?
        } else {
            db.flush()?
        };
    }
    Ok(())
}

/// Runs [`measure`] under callgrind and returns its record. Callgrind merges functions with equal names, and
/// demangled names lack the types of generic functions, so names are demangled afterwards.
fn record(operation: &Operation, store: &Path, record: &Path) -> String {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no", "--toggle-collect=*4hops8measured*"])
        .arg(format!("--callgrind-out-file={}", record.display()))
        .arg(std::env::current_exe().expect("this program"))
        .arg(operation.name)
        .arg(store)
        .output()
        .expect("valgrind, which must be installed");
    assert!(output.status.success(), "callgrind failed: {}", String::from_utf8_lossy(&output.stderr));
    let record = std::fs::File::open(record).expect("a record");
    let demangled = Command::new("c++filt").arg("--format=rust").stdin(record).output();
    String::from_utf8(demangled.expect("c++filt, which comes with the linker").stdout).expect("a record")
}

fn measure(operation: &Operation, dir: &Path) -> Result<()> {
    let db = Db::open(dir)?;
    db.warm()?;
    let [before, followed] = (operation.keys)(&db);
    (operation.call)(&db, &before);
    measured(&db, operation.call, &followed);
    Ok(())
}

/// The contents of callgrind's record.
#[inline(never)]
fn measured(db: &Db, call: fn(&Db, &[u8]), key: &[u8]) {
    call(db, key);
}

/// The functions of a program, by callgrind's numbers.
#[derive(Default)]
struct Graph {
    functions: BTreeMap<u32, Function>,
    names: BTreeMap<u32, String>,
    files: BTreeMap<u32, String>,
}

#[derive(Default)]
struct Function {
    file: u32,
    /// Files of functions that were inlined into this one.
    inlined: BTreeSet<u32>,
    /// In the order of the code.
    calls: Vec<u32>,
}

impl Graph {
    /// Parses a callgrind file: `fl=` and `fn=` begin a function, `fi=` and `fe=` name the file that its next
    /// lines were inlined from, and `cfn=` is a function that it calls. A name is spelled out where its
    /// number is first used.
    fn parse(record: &str) -> Graph {
        let (mut graph, mut file, mut function) = (Graph::default(), 0, 0);
        for (key, value) in record.lines().filter_map(|line| line.split_once("=(")) {
            let Some((number, name)) = value.split_once(')') else { continue };
            let Ok(number) = number.parse() else { continue };
            let names = if key.ends_with("fn") { &mut graph.names } else { &mut graph.files };
            if !name.is_empty() {
                names.insert(number, name.trim().to_owned());
            }
            match key {
                "fl" => file = number,
                "fn" => {
                    function = number;
                    graph.functions.entry(function).or_default().file = file;
                }
                "fi" | "fe" => _ = graph.functions.entry(function).or_default().inlined.insert(number),
                "cfn" => graph.functions.entry(function).or_default().calls.push(number),
                _ => {}
            }
        }
        graph
    }

    /// The path of a file of [`SOURCES`] in the repository. `lib.rs`, which has no functions, stands for code
    /// without a line.
    fn source(&self, file: u32) -> Option<&str> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
        let root = root.strip_suffix("benches/micro/").unwrap_or(root);
        let path = self.files.get(&file)?.strip_prefix(root)?;
        (SOURCES.iter().any(|dir| path.starts_with(dir)) && !path.ends_with("/lib.rs")).then_some(path)
    }

    /// The files and functions of [`SOURCES`] that are called from `from`, each once.
    fn crossed(&self, from: u32, visited: &mut BTreeSet<u32>, found: &mut Vec<(String, String)>) {
        if !visited.insert(from) {
            return;
        }
        let Some(function) = self.functions.get(&from) else { return };
        if let Some(file) = self.source(function.file) {
            let step = (file.to_owned(), short(&self.names[&from]));
            if !found.contains(&step) {
                found.push(step);
            }
        }
        for file in function.inlined.iter().filter(|file| **file != function.file) {
            if let Some(file) = self.source(*file)
                && found.iter().all(|(known, _)| known != file)
            {
                found.push((file.to_owned(), INLINED.to_owned()));
            }
        }
        for callee in &function.calls {
            self.crossed(*callee, visited, found);
        }
    }

    fn print(&self, operation: &str) {
        let measured = self.names.iter().find(|(_, name)| name.starts_with("hops::measured"));
        let (measured, _) = measured.expect("the call that is followed");
        let mut steps = Vec::new();
        self.crossed(*measured, &mut BTreeSet::new(), &mut steps);
        let functions = steps.iter().filter(|(_, function)| function != INLINED).count();
        let stays: Vec<_> = steps.chunk_by(|(a, _), (b, _)| a == b).collect();
        let files: BTreeSet<_> = steps.iter().map(|(file, _)| file).collect();
        println!("{operation}: {} files, entered {} times, {functions} functions", files.len(), stays.len());
        for stay in stays {
            let functions = Vec::from_iter(stay.iter().map(|(_, function)| function.as_str())).join(", ");
            println!("    {}: {functions}", stay[0].0);
        }
    }
}

/// A function's name without module path and final hash; closures count as their enclosing function.
fn short(name: &str) -> String {
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(name, _)| name);
    let name = name.split("::{{closure}}").next().unwrap_or(name);
    let mut short = String::new();
    for part in name.split_inclusive("::") {
        let start = part.rfind(|c: char| !c.is_alphanumeric() && !"_:".contains(c)).map_or(0, |at| at + 1);
        let is_module = part.ends_with("::") && part[start..].starts_with(|c: char| c.is_lowercase());
        short.push_str(if is_module { &part[..start] } else { part });
    }
    match short.strip_prefix("<impl ").and_then(|rest| rest.rsplit_once(">::")) {
        Some((of, name)) => format!("{of}::{name}"),
        None => short,
    }
}
