//! A maliciously made directory: enormous numbers and lengths, foreign and misnamed files, forged logs and
//! edits, with valid checksums. Nothing panics, hangs, or takes more than 256 MiB; and once `repair` has
//! succeeded, the store opens, takes writes and is sound.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sidebloom::{Db, Error};
use sidebloom_fuzz::directory::{Change, STORE, build, key, options};
use sidebloom_fuzz::disk::SimFs;
use sidebloom_fuzz::memory::Limited;

#[global_allocator]
static MEMORY: Limited = Limited;

/// What to do with the directory.
#[derive(Debug, Arbitrary, Clone, Copy, PartialEq)]
enum Step {
    Read,
    Follow,
    Verify,
    Write,
    Compact,
    Repair,
}

#[derive(Debug, Arbitrary)]
struct Input {
    steps: [Step; 2],
    changes: Vec<Change>,
}

fuzz_target!(|input: Input| {
    let fs = build(&input.changes);
    let [first, second] = input.steps;
    run(first, &fs);
    if first != second {
        run(second, &fs);
    }
});

fn run(step: Step, fs: &SimFs) {
    let open = |read_only: bool, follow: bool| {
        expected(options(fs).read_only(read_only).follow(follow).create_if_missing(false).open(STORE))
    };
    match step {
        Step::Repair => {
            if let Some(report) = expected(options(fs).repair(STORE)) {
                let db = options(fs).open(STORE);
                works(&db.unwrap_or_else(|error| panic!("{error}, after {report:?}")));
            }
        }
        Step::Read | Step::Follow => {
            let Some(db) = open(true, step == Step::Follow) else { return };
            for n in 0..8 {
                expected(db.get(key(n)));
            }
            db.iter().for_each(|row| drop(expected(row)));
            db.iter().rev().take(9).for_each(|row| drop(expected(row)));
        }
        Step::Verify => drop(open(true, false).and_then(|db| expected(db.verify()))),
        Step::Write => {
            let Some(db) = open(false, false) else { return };
            expected(db.put("new", "value"));
            expected(db.flush());
            expected(db.get("new"));
            drop(db.stats());
        }
        Step::Compact => {
            let Some(db) = open(false, false) else { return };
            expected(db.compact());
            expected(db.get(key(3)));
        }
    }
}

/// A repaired store takes writes and is sound. Filters are not repaired, but rebuilt in the background.
fn works(db: &Db) {
    db.put("new", "value").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get("new").unwrap().as_deref(), Some(&b"value"[..]));
    for problem in db.verify().unwrap().problems {
        let text = problem.to_string();
        assert!(text.contains(".filter"), "after repair: {text}");
    }
}

/// Checks that an error is one that such a directory may cause.
fn expected<T>(result: sidebloom::Result<T>) -> Option<T> {
    match result {
        Err(error @ Error::Internal(_)) => panic!("{error}"),
        result => result.ok(),
    }
}
