//! I13: a store removes no file that it did not create.

use crate::support::{STORE, SimFs, tiny_on};
use sidebloom::{Db, Error};
use std::path::{Path, PathBuf};

const FOREIGN: &[u8] = b"somebody else's rows";

/// Foreign files under the names that the store uses next.
fn occupy(fs: &SimFs, db: &Db, ending: &str) -> Vec<PathBuf> {
    let numbers = fs.files().iter().filter_map(|path| path.file_stem()?.to_str()?.parse().ok()).max();
    let first: u64 = numbers.unwrap_or(0);
    assert!(db.stats().levels.len() < 100);
    let path = |number: u64| Path::new(STORE).join(format!("{number:06}{ending}"));
    let taken: Vec<_> = (first + 1..first + 9).map(path).collect();
    taken.iter().for_each(|path| fs.write(path, FOREIGN));
    taken
}

#[test]
fn i13_a_log_or_segment_whose_name_is_taken_stays_and_the_store_says_so() {
    for ending in [".wal", ".segment"] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).open(STORE).unwrap();
        db.put(b"a", b"1").unwrap();
        let taken = occupy(&fs, &db, ending);
        let error = db.flush().unwrap_err().to_string();
        assert!(error.contains(ending) && error.contains("exists"), "{error}");
        assert!(matches!(db.put(b"b", b"2"), Err(Error::Poisoned { .. })));
        assert_eq!(db.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
        drop(db);
        for path in taken {
            assert_eq!(fs.read(&path).as_deref(), Some(FOREIGN), "{}", path.display());
        }
    }
}

#[test]
fn i13_the_first_log_of_a_writer_does_not_replace_one_that_has_appeared() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put(b"a", b"1").unwrap();
    drop(db);
    let db = tiny_on(&fs).open(STORE).unwrap();
    let taken = occupy(&fs, &db, ".wal");
    let error = db.put(b"b", b"2").unwrap_err().to_string();
    assert!(error.contains(".wal") && error.contains("exists"), "{error}");
    drop(db);
    assert!(taken.iter().all(|path| fs.read(path).as_deref() == Some(FOREIGN)), "{:?}", fs.files());
}

#[test]
fn i13_a_checkpoint_that_fails_leaves_what_others_have_put_there() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put(b"a", b"1").unwrap();
    db.flush().unwrap();
    let segment =
        fs.files().into_iter().find(|path| path.extension().is_some_and(|e| e == "segment")).unwrap();
    let foreign = Path::new("disk/copy").join(segment.file_name().unwrap());
    let (is_put, path) = (std::sync::atomic::AtomicBool::new(false), foreign.clone());
    fs.before_each(move |fs, kind, _| {
        if kind == crate::support::OpKind::Link && !is_put.swap(true, std::sync::atomic::Ordering::SeqCst) {
            fs.write(&path, FOREIGN);
        }
    });
    db.checkpoint("disk/copy").unwrap_err();
    assert_eq!(fs.read(&foreign).as_deref(), Some(FOREIGN));
    assert!(fs.files().iter().all(|path| !path.starts_with("disk/copy") || *path == foreign));
}
