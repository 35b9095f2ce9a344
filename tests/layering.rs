//! The layout of the source (DESIGN.md): a module imports only lower ranks, files stay small, `unsafe` and I/O (I8) have their homes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What each module may import: every module of a lower rank. Siblings of one rank do not know each other.
const RANKS: [&[&str]; 7] = [
    &["error", "id"],
    &["key", "hash", "codec", "fs"],
    &["filter"],
    &["sidecar", "segment", "wal", "memtable"],
    &["merge", "manifest"],
    &["db"],
    &["guard"],
];
const LINES_MAX: usize = 450;
/// Every file of `src/` that has unsafe code, and what for.
const UNSAFE_HOMES: [(&str, &str); 14] = [
    ("filter/blocked/avx2.rs", "SIMD"),
    ("filter/blocked/avx512.rs", "SIMD"),
    ("filter/isa.rs", "the prefetch instruction"),
    ("filter/lines.rs", "aligned lines as bytes, and the advice for huge pages"),
    ("filter/parity/avx2.rs", "SIMD"),
    ("filter/parity/avx512.rs", "SIMD"),
    ("filter/parity/mod.rs", "calls of SIMD functions that detection has allowed"),
    ("filter/prober.rs", "calls of SIMD functions that detection has allowed"),
    ("fs/map.rs", "the mapping"),
    ("fs/mod.rs", "the contract of a mapping"),
    ("fs/real.rs", "the mapping"),
    ("fs/sparing.rs", "the contract of a mapping, passed on"),
    ("fs/sigbus.rs", "the signal handler"),
    ("sidecar/verify.rs", "the promise that a published sidecar never changes"),
];

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

/// Every Rust file below `dir`, with its path relative to it.
fn sources(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(at) = open.pop() {
        for path in fs::read_dir(at).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(!found.is_empty(), "{}", dir.display());
    found
}

/// Tests may import what they like.
fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs" || part.ends_with("_tests.rs"))
        || path == "golden.rs"
}

/// The code of a file: without comments, without its `mod tests` at the end.
fn code(text: &str) -> String {
    let without_tests = match text.find("#[cfg(test)]\nmod tests {") {
        Some(at) => &text[..at],
        None => text,
    };
    let line = |line: &str| line.split_once("//").map_or(line, |(code, _)| code).to_owned();
    without_tests.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A list of words is data, not code to be split by role.
fn is_list_item(line: &str) -> bool {
    let line = line.trim();
    line.len() > 3 && line.starts_with('"') && line.ends_with("\",")
}

fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Byte offsets behind each occurrence of `word` that is not the end of a longer name.
fn after_each<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let starts = code.match_indices(word);
    starts.filter(|(at, _)| !code[..*at].ends_with(is_ident)).map(move |(at, _)| at + word.len())
}

/// The first names of a path or of each path within braces: `a` of `a::b`, `a` and `b` of `{a::{x, y}, b}`.
fn first_names(code: &str) -> Vec<&str> {
    let name = |text: &str| text.find(|c| !is_ident(c)).unwrap_or(text.len());
    let Some(list) = code.strip_prefix('{') else { return vec![&code[..name(code)]] };
    let (mut names, mut depth, mut expects) = (Vec::new(), 0, true);
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expects = true,
            c if expects && is_ident(c) => {
                names.push(&list[at..at + name(&list[at..])]);
                expects = false;
            }
            _ => {}
        }
    }
    names
}

/// The modules of the crate's root that a file names: through `crate::`, or through `super::` up to the root.
fn imports<'a>(path: &str, code: &'a str) -> Vec<&'a str> {
    let depth = path.trim_end_matches("/mod.rs").split('/').count();
    let to_root = "super::".repeat(depth);
    let mut found: Vec<_> = after_each(code, "crate::").flat_map(|at| first_names(&code[at..])).collect();
    for at in after_each(code, "super::") {
        let begins = !code[..at - "super::".len()].ends_with("super::");
        if begins && code[at - "super::".len()..].starts_with(&to_root) {
            found.extend(first_names(&code[at - "super::".len() + to_root.len()..]));
        }
    }
    found
}

fn has_unsafe(code: &str) -> bool {
    after_each(code, "unsafe").any(|at| !code[at..].starts_with(is_ident))
}

/// What is wrong with a file of `src/`, in words.
fn violations(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().filter(|line| !is_list_item(line)).count();
    if lines > LINES_MAX {
        found.push(format!("{path} has {lines} lines, at most {LINES_MAX} are allowed: split it by role"));
    }
    if is_test(path) || path == "lib.rs" {
        return found;
    }
    let code = code(text);
    let module = path.split(['/', '.']).next().unwrap_or_default();
    let is_cli = module == "cli" || module == "main";
    for name in imports(path, &code) {
        let allowed = match (rank(module), rank(name)) {
            _ if is_cli => name == "cli",
            _ if name == module => true,
            (Some(mine), Some(its)) => its < mine,
            _ => false,
        };
        if !allowed {
            found.push(format!("{path} imports {name}, which is not of a lower rank than {module}"));
        }
    }
    if has_unsafe(&code) && UNSAFE_HOMES.iter().all(|(home, _)| *home != path) {
        found.push(format!("{path} has unsafe code and is not listed among its homes, in tests/layering.rs"));
    }
    if module != "fs" && !is_cli {
        for word in ["std::fs", "File::", "OpenOptions", "rustix::fs", "std::os::unix::fs", "memmap2"] {
            if after_each(&code, word).next().is_some() {
                found.push(format!("{path} uses {word}: all I/O goes through src/fs (I8)"));
            }
        }
    }
    found
}

#[test]
fn modules_import_lower_ranks_only_files_are_small_and_unsafe_and_io_stay_at_home() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let found: Vec<_> = sources(&src).iter().flat_map(|(path, text)| violations(path, text)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_listed_home_of_unsafe_has_some() {
    let src = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for (home, what_for) in UNSAFE_HOMES {
        assert!(src.get(home).is_some_and(|text| has_unsafe(&code(text))), "{home} ({what_for})");
    }
}

#[test]
fn tests_and_benches_are_small_files_too() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for dir in ["tests", "benches", "examples"].map(|dir| root.join(dir)).iter().filter(|dir| dir.is_dir()) {
        for (path, text) in sources(dir) {
            assert!(text.lines().count() <= LINES_MAX, "{path} is too long");
        }
    }
}

#[test]
fn the_library_does_not_contain_the_command_line() {
    let root = include_str!("../src/lib.rs");
    assert!(
        !code(root).contains("mod cli"),
        "the command line sees the public API only: it belongs to main.rs"
    );
}

#[test]
fn each_kind_of_violation_is_found() {
    let long = "\n".repeat(LINES_MAX + 1);
    let planted = [
        ("wal/reader.rs", "use crate::db::Db;"),
        ("wal/reader.rs", "use crate::{error::Error, segment::{Segment, Cursor}};"),
        ("wal/reader.rs", "use super::super::manifest::State;"),
        ("wal/mod.rs", "use super::db::Db;"),
        ("merge.rs", "use super::manifest::State;"),
        ("error.rs", "fn f(id: crate::id::FileId) {}"),
        ("filter/mod.rs", "use crate::fs;\nuse crate::sidecar::Sidecar;"),
        ("cli/get.rs", "use crate::db::Db;"),
        ("main.rs", "use crate::wal;"),
        ("db/write.rs", "use crate::nobody_knows_it::X;"),
        ("db/write.rs", "fn f() { unsafe { g() } }"),
        ("filter/sizing.rs", "unsafe fn f() {}"),
        ("segment/reader.rs", "fn f() { std::fs::remove_file(p); }"),
        ("db/open.rs", "let file = File::open(path);"),
        ("sidecar/verify.rs", "let map = memmap2::Mmap::map(&file);"),
        ("db/tests.rs", &long),
    ];
    for (path, text) in planted {
        assert_eq!(violations(path, text).len(), 1, "{path}: {}", text.trim());
    }
    let fine = [
        ("wal/reader.rs", "use super::format::Header; // not crate::db\nuse crate::error::Result;"),
        ("db/write.rs", "use crate::{error::Error, wal::{self, Batch}};\nuse super::core::Core;"),
        ("db/open.rs", "SegmentFile::new(); let unsafely = 1;"),
        ("cli/get.rs", "use sidebloom::Db;\nuse crate::cli::output;\nuse std::fs::File;"),
        ("wal/reader.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::db::Db;\n}"),
    ];
    for (path, text) in fine {
        assert_eq!(violations(path, text), [""; 0]);
    }
}
