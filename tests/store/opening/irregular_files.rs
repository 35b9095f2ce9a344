//! Anything but a regular file in place of a store's file is an error at once: opening a pipe would wait for
//! its other end.

use crate::support::{assert_holds, fast_dir, fill_deep, promptly, tiny};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sidebloom::{Error, Options};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Replaces a file by something else.
type Replace = fn(&Path);

const KINDS: [(Replace, &str); 3] = [
    (|path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(), "a named pipe (FIFO)"),
    (|path| drop(UnixListener::bind(path).unwrap()), "a socket"),
    (|path| fs::create_dir(path).unwrap(), "a directory"),
];

fn file_in(dir: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_str().unwrap().ends_with(name)).max().unwrap()
}

#[track_caller]
fn assert_named(error: &Error, path: &Path, kind: &str) {
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()) && text.contains(kind), "{text}");
}

#[test]
fn a_pipe_a_socket_or_a_directory_in_place_of_a_file_is_an_error_at_once() {
    for (replace, kind) in KINDS {
        for name in ["MANIFEST", ".wal", "LOCK"] {
            let dir = fast_dir();
            let store = dir.path().join("s");
            tiny().open(&store).unwrap().put("key", "value").unwrap();
            let path = file_in(&store, name);
            fs::remove_file(&path).unwrap();
            replace(&path);
            for options in [tiny(), tiny().read_only(true), tiny().follow(true)] {
                let store = store.clone();
                let error = promptly("open", move || options.open(store).map(drop)).unwrap_err();
                assert_named(&error, &path, kind);
            }
            let repaired = {
                let store = store.clone();
                promptly("repair", move || Options::new().repair(store))
            };
            match name {
                "LOCK" => assert_named(&repaired.unwrap_err(), &path, kind),
                _ => {
                    assert_named(&repaired.unwrap().set_aside[0], &path, kind);
                    tiny().open(&store).unwrap().put("key", "again").unwrap();
                }
            }
        }
    }
}

/// A pipe in place of a segment is an error, and one in place of a filter is not.
#[test]
fn a_pipe_for_a_segment_is_an_error_and_one_for_a_filter_is_none() {
    for (replace, kind) in KINDS {
        let dir = fast_dir();
        let store = dir.path().join("s");
        let expected = fill_deep(&tiny().open(&store).unwrap(), 1);
        let filter = file_in(&store, ".filter");
        fs::remove_file(&filter).unwrap();
        replace(&filter);
        let db = tiny().read_only(true).open(&store).unwrap();
        assert_holds(&db, &expected);
        drop(db);
        let segment = file_in(&store, ".segment");
        fs::remove_file(&segment).unwrap();
        replace(&segment);
        let db = tiny().read_only(true).open(&store).unwrap();
        let error = promptly("read", move || db.iter().find_map(Result::err)).unwrap();
        assert_named(&error, &segment, kind);
        let report = {
            let store = store.clone();
            promptly("repair", move || Options::new().repair(store))
        };
        assert_named(&report.unwrap().set_aside[0], &segment, kind);
        tiny().open(&store).unwrap().iter().for_each(|row| drop(row.unwrap()));
    }
}

#[test]
fn a_lock_file_that_is_a_symbolic_link_creates_no_file_elsewhere() {
    let dir = fast_dir();
    let (store, elsewhere) = (dir.path().join("s"), dir.path().join("elsewhere"));
    fs::create_dir(&store).unwrap();
    symlink(&elsewhere, store.join("LOCK")).unwrap();
    for target_exists in [false, true] {
        if target_exists {
            fs::write(&elsewhere, "theirs").unwrap();
        }
        assert_named(&tiny().open(&store).map(drop).unwrap_err(), &store.join("LOCK"), "a symbolic link");
        assert_eq!(elsewhere.exists(), target_exists);
    }
}
