//! An opening that gets only some of its threads leaves none running: they would work in a store that nobody
//! has open or locked.

use crate::support::{contents, eventually, fast_dir, tiny};
use crate::{arguments_for, assert_ran, exclusive};
use sidebloom::{Error, Options};
use std::path::PathBuf;
use std::process::Command;

/// Tells the child process where its store is.
const STORE_OF_CHILD: &str = "SIDEBLOOM_TEST_THREADS_OF_CHILD";

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// An opening that cannot start all threads stops those that it started.
#[test]
fn an_opening_that_cannot_start_all_threads_ends_those_it_has_started() {
    let _exclusive = exclusive();
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    drop(db);
    // Each thread takes about a quarter of the address space.
    let child = Command::new("sh")
        .args(["-c", "ulimit -v 4000000 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(arguments_for(module_path!(), "child_with_few_threads"))
        .env("RUST_MIN_STACK", "1000000000")
        .env(STORE_OF_CHILD, dir.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    assert_ran(&child.stdout);
}

/// Run by the test above.
#[test]
fn child_with_few_threads() {
    let Some(store) = std::env::var_os(STORE_OF_CHILD).map(PathBuf::from) else { return };
    let before = threads();
    let error = tiny().background_threads(8).open(&store).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Io { .. }) && error.to_string().contains("start a thread"), "{error}");
    eventually("the threads end", || threads() == before);
    // Followers have two threads, so one of these openings gets only one of them, unless a reader with one
    // thread comes before.
    for readers in 0..2 {
        let read_only = (0..readers).map(|_| Options::new().read_only(true).open(&store).unwrap());
        let mut open: Vec<_> = read_only.collect();
        let error = loop {
            match Options::new().follow(true).open(&store) {
                Ok(follower) => open.push(follower),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("start a thread"), "{error}");
        drop(open);
        eventually("the threads end", || threads() == before);
    }
    let db = tiny().open(&store).unwrap();
    db.put("b", "2").unwrap();
    assert_eq!(contents(&db).len(), 2);
}
