//! Which modules of a crate each one may import, and where `unsafe` and I/O are allowed.

use crate::methods::imports;
use crate::modules::Modules;
use crate::{Files, crates};

/// What each module may import: every module of a lower rank. Siblings of one rank do not know each other.
const RANKS: [(&str, &[&[&str]]); 2] = [
    // The filters open no files. They need no ranks: without cycles among their files, the order is clear.
    ("crates/filter/src", &[]),
    (
        "src",
        &[
            &["show"],
            &["bounds", "direction", "error", "event", "id", "progress", "shards", "sync"],
            &["key", "fs", "remedy"],
            &["ranges", "sort"],
            &["sidecar", "segment", "wal", "memtable"],
            &["manifest"],
            &["live"],
            &["merge", "options"],
            &["engine"],
            &["api"],
            &["guard"],
            &["backup"],
        ],
    ),
];
/// Every file of these crates with unsafe code, and the reason.
const UNSAFE_HOMES: [(&str, &str); 27] = [
    ("crates/filter/src/blocked/eights.rs", "SIMD loads"),
    ("crates/filter/src/blocked/entry.rs", "functions compiled for an instruction set"),
    ("crates/filter/src/huge_pages.rs", "advice about pages"),
    ("crates/filter/src/lines.rs", "aligned lines as bytes"),
    ("crates/filter/src/parity/avx2.rs", "SIMD loads"),
    ("crates/filter/src/parity/avx512.rs", "SIMD loads"),
    ("crates/filter/src/parity/avx512_algebra.rs", "SIMD loads and stores"),
    ("crates/filter/src/parity/scalar.rs", "SSE2, where it is part of the architecture"),
    ("crates/filter/src/parity/build.rs", "calls of SIMD functions that detection has allowed"),
    ("crates/filter/src/parity/entry.rs", "functions compiled for an instruction set"),
    ("crates/filter/src/prefetch.rs", "the prefetch instruction"),
    ("crates/filter/src/probe_fns.rs", "the types of the functions that a prober calls"),
    ("crates/filter/src/prober.rs", "calls of SIMD functions that detection has allowed"),
    ("src/fs/file.rs", "the contract of a mapping"),
    ("src/fs/map.rs", "the mapping"),
    ("src/fs/traits.rs", "the contract of a mapping"),
    ("src/fs/process.rs", "the page that a fork wipes, and pthread_atfork"),
    ("src/fs/real.rs", "the mapping"),
    ("src/fs/store_fs.rs", "the contract of a mapping, passed on"),
    ("src/fs/locked_fs.rs", "the contract of a mapping, passed on"),
    ("src/fs/read_only_tree.rs", "the contract of a mapping, passed on"),
    ("src/fs/reader_locks.rs", "fcntl"),
    ("src/fs/sigbus.rs", "the signal handler"),
    ("src/sync/short_lock.rs", "the clock of a thread's CPU time"),
    ("src/segment/in_place.rs", "the promise that a published segment never changes"),
    ("src/sidecar/mapped.rs", "the promise that the file of a filter never changes"),
    ("src/sidecar/verify.rs", "the promise that a published sidecar never changes"),
];
/// Files that read and write files without the seam in `src/fs`.
const IO: [&[&str]; 6] = [
    &["std", "fs"],
    &["std", "os", "unix", "fs"],
    &["rustix", "fs"],
    &["memmap2"],
    &["File"],
    &["OpenOptions"],
];

/// Files that schedule threads without the seam in `src/sync/mod.rs`.
const THREADS: [&[&str]; 7] = [
    &["std", "thread"],
    &["std", "time", "Instant"],
    &["std", "sync", "Barrier"],
    &["std", "sync", "Condvar"],
    &["std", "sync", "Mutex"],
    &["std", "sync", "RwLock"],
    &["std", "sync", "mpsc"],
];
/// May use it: the seam itself, and what outlives the stores of a process.
const UNSCHEDULED: [&str; 3] = ["src/sync", "src/fs/", "src/shards.rs"];

/// The violations of a crate in the table, in words.
fn violations(dir: &str, files: &Files) -> Vec<String> {
    let (modules, mut found) = (Modules::new(files), Vec::new());
    let ranks = RANKS.iter().find(|(crate_dir, _)| *crate_dir == dir).map_or(&[][..], |(_, ranks)| ranks);
    let rank = |module: &str| ranks.iter().position(|its| its.contains(&module));
    let top = |file: &str| file.split(['/', '.']).next().unwrap_or_default().to_owned();
    for (file, imported) in imports(&modules).into_iter().filter(|_| !ranks.is_empty()) {
        for (other, by) in imported.iter().filter(|(other, _)| top(other) != top(file) && top(file) != "lib")
        {
            if rank(&top(other)).is_none_or(|its| rank(&top(file)).is_none_or(|mine| its >= mine)) {
                let by = Vec::from_iter(by.iter().map(String::as_str)).join(", ");
                found.push(format!("{dir}/{file} imports {other} by {by}, which is not of a lower rank"));
            }
        }
    }
    for (file, paths) in modules.paths() {
        let home = format!("{dir}/{file}");
        if paths.contains(&["unsafe"][..]) && UNSAFE_HOMES.iter().all(|(listed, _)| *listed != home) {
            found.push(format!(
                "{home} has unsafe code and is not listed among its homes, in tests/layering/ranks.rs"
            ));
        }
        let io = IO
            .iter()
            .filter(|io| paths.iter().any(|path| path.starts_with(io) && (io.len() > 1 || path.len() > 1)));
        if dir == "src" && UNSCHEDULED.iter().all(|allowed| !home.starts_with(allowed)) {
            let threads = THREADS.iter().filter(|item| paths.iter().any(|path| path.starts_with(item)));
            found.extend(threads.map(|item| {
                format!("{home} uses {}: threads, locks and time go through src/sync/mod.rs", item.join("::"))
            }));
        }
        if !home.starts_with("src/fs/") {
            found.extend(
                io.map(|io| format!("{home} uses {}: all I/O goes through src/fs (I8)", io.join("::"))),
            );
        }
    }
    found
}

#[test]
fn i8_io_and_unsafe_stay_at_home_and_modules_import_lower_ranks_only() {
    let mut crates = crates();
    crates.retain(|dir, _| RANKS.iter().any(|(ranked, _)| ranked == dir));
    assert_eq!(crates.len(), RANKS.len());
    let found: Vec<_> = crates.iter().flat_map(|(dir, files)| violations(dir, files)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_listed_home_of_unsafe_has_some() {
    let crates = crates();
    for (home, what_for) in UNSAFE_HOMES {
        let has_some = |(dir, files): (&String, &Files)| {
            Modules::new(files)
                .paths()
                .any(|(file, paths)| format!("{dir}/{file}") == home && paths.contains(&["unsafe"][..]))
        };
        assert!(crates.iter().any(has_some), "{home} ({what_for})");
    }
}

#[cfg(test)]
fn with(file: &str, text: &str) -> Vec<String> {
    let others = [
        ("live/mod.rs", "pub struct LiveSet;"),
        ("lib.rs", "mod id;\npub use id::FileId;"),
        ("engine/mod.rs", "pub struct Db;"),
        ("error.rs", "pub struct Error;"),
        ("id.rs", "pub struct FileId;"),
        ("manifest/mod.rs", "mod edit;\npub(crate) use edit::State;"),
        ("manifest/edit.rs", "pub(crate) struct State;"),
        ("segment/mod.rs", "pub struct Segment; pub struct Cursor;"),
        ("wal/mod.rs", "pub struct Batch;"),
        (file, text),
    ];
    let files = others.iter().map(|(file, text)| (file.to_string(), text.to_string())).collect();
    violations("src", &files)
}

#[test]
fn each_kind_of_violation_is_found() {
    let planted = [
        ("wal/reader.rs", "use crate::engine::Db;"),
        ("wal/reader.rs", "use crate::{error::Error, segment::{Segment}};"),
        ("wal/reader.rs", "use super::super::manifest::State;"),
        ("wal/mod.rs", "use super::engine::Db;"),
        ("manifest/edit.rs", "use crate::live::LiveSet;"),
        ("error.rs", "fn f(id: crate::id::FileId) {}"),
        ("error.rs", "fn f(id: crate::FileId) {}"),
        ("unranked.rs", "fn f(error: crate::error::Error) {}"),
        ("engine/write/mod.rs", "fn f() { unsafe { g() } }"),
        ("filter/sizing.rs", "unsafe fn f() {}"),
        ("segment/reader.rs", "fn f() { std::fs::remove_file(p); }"),
        ("segment/reader.rs", "use std::{fs, io};"),
        ("engine/open/mod.rs", "let file = File::open(path);"),
        ("sidecar/verify.rs", "let map = memmap2::Mmap::map(&file);"),
        ("engine/open/mod.rs", "use std::sync::{Arc, Mutex};"),
        ("engine/open/mod.rs", "fn f() { std::thread::yield_now(); }"),
        ("guard/open.rs", "use std::time::{Duration, Instant};"),
    ];
    for (file, text) in planted {
        assert_eq!(with(file, text).len(), 1, "{file}: {text}");
    }
    let fine = [
        ("wal/reader.rs", "use super::format::Header; // not crate::db\nuse crate::error::Error;"),
        ("engine/write/mod.rs", "use crate::{error::Error, wal::{self, Batch}};\nuse super::inner::Inner;"),
        ("engine/open/mod.rs", "SegmentFile::new(); let unsafely = 1;"),
        ("wal/reader.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::engine::Db;\n}"),
    ];
    for (file, text) in fine {
        assert_eq!(with(file, text), [""; 0]);
    }
}
