//! The layout of the source (docs/design.md): packages and modules import only lower ones, no file imports
//! itself indirectly, files stay small, `unsafe` and I/O (I8) have their homes, and each rule of the design
//! has tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod calls;
mod comments;
mod cycles;
mod links;
mod method_cycles;
mod methods;
mod modules;
mod packages;
mod ranks;
mod source;
mod test_names;
mod types;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const LINES_MAX: usize = 400;

/// Text by path. Paths are relative to the workspace, or to a crate's source directory.
type Files = BTreeMap<String, String>;

/// Every file of the workspace with this extension.
fn workspace(extension: &str) -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut found, mut open) = (Files::new(), vec![root.to_path_buf()]);
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|its| its == extension) {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// The crates with their own directory, each with its files.
fn crates() -> BTreeMap<String, Files> {
    let files = workspace("rs");
    let roots = files.keys().filter_map(|path| {
        path.strip_suffix("/lib.rs").or_else(|| path.strip_suffix("/main.rs")).map(str::to_owned)
    });
    let of = |dir: &String| {
        let inside = |(path, text): (&String, &String)| {
            Some((path.strip_prefix(dir.as_str())?.strip_prefix('/')?.to_owned(), text.clone()))
        };
        files.iter().filter_map(inside).collect()
    };
    roots.map(|dir| (dir.clone(), of(&dir))).collect()
}

/// A relative path in `file`, from the root of the workspace.
fn resolved(file: &str, relative: &str) -> String {
    let mut at: Vec<&str> = file.split('/').collect();
    at.pop();
    for part in relative.split('/') {
        match part {
            ".." => _ = at.pop(),
            part => at.push(part),
        }
    }
    at.join("/")
}

#[test]
fn files_are_small() {
    // A list of words is data, not code to be split by role.
    let is_word = |line: &str| line.len() > 3 && line.starts_with('"') && line.ends_with("\",");
    for (path, text) in workspace("rs") {
        let lines = text.lines().filter(|line| !is_word(line.trim())).count();
        assert!(lines <= LINES_MAX, "{path} has {lines} lines, more than {LINES_MAX}: split it by role");
    }
}
