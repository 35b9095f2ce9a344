//! Interrupted clones leave nothing, or nothing that looks like a store.

use super::{Bench, contents, fill, small};
use crate::support::counting::damage;
use object_store::path::Path;
use sidebloom_remote::{Error, Publisher, TakeOver};
use std::fs;

fn published(bench: &Bench) -> sidebloom::Db {
    let db = bench.open("store");
    fill(&db, 0..5000, "value");
    db.compact().unwrap();
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    db
}

fn names_in(dir: &std::path::Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(name).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_clone_that_fails_leaves_nothing_behind() {
    for folder in ["manifest/", "segment/"] {
        let bench = Bench::new();
        let db = published(&bench);
        let last = bench.objects().into_iter().rfind(|name| name.contains(folder)).unwrap();
        let whole = bench.bytes(&last);
        damage(&*bench.store.inner, &Path::from(last.as_str()), |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
        let dir = bench.path("clone");
        let error = sidebloom_remote::clone(&bench.remote(), &dir, &mut |_, _| ()).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{folder}: {error}");
        assert!(!dir.exists(), "{folder}: {:?}", names_in(&dir));
        // What somebody else put there stays.
        let letter = dir.join("letter.txt");
        let put = &mut |_, _| fs::write(&letter, "dear").unwrap();
        assert!(sidebloom_remote::clone(&bench.remote(), &dir, put).is_err());
        assert_eq!(names_in(&dir), ["letter.txt"], "{folder}");
        fs::remove_dir_all(&dir).unwrap();
        bench.put(&last, whole);
        sidebloom_remote::clone(&bench.remote(), &dir, &mut |_, _| ()).unwrap();
        assert_eq!(contents(&small().open(dir).unwrap()), contents(&db));
    }
}

#[test]
fn a_clone_that_was_killed_is_no_store_to_open_or_repair() {
    let bench = Bench::new();
    let db = published(&bench);
    let dir = bench.path("clone");
    let mut killed = Vec::new();
    sidebloom_remote::clone(&bench.remote(), &dir, &mut |_, _| {
        let now = bench.path(&format!("killed {}", killed.len()));
        fs::create_dir(&now).unwrap();
        for name in names_in(&dir) {
            fs::copy(dir.join(&name), now.join(&name)).unwrap();
        }
        killed.push(now);
        if killed.len() == 2 {
            let other = sidebloom_remote::clone(&bench.remote(), &dir, &mut |_, _| ()).unwrap_err();
            assert!(matches!(&other, Error::Store(sidebloom::Error::Locked { .. })), "{other}");
        }
    })
    .unwrap();
    assert!(killed.len() > 4, "{killed:?}");
    for dir in killed {
        let names = names_in(&dir);
        let errors = [
            small().open(&dir).err().map(Error::from),
            small().read_only(true).open(&dir).err().map(Error::from),
            small().follow(true).open(&dir).err().map(Error::from),
            sidebloom::repair(&dir).err().map(Error::from),
            sidebloom_remote::clone(&bench.remote(), &dir, &mut |_, _| ()).err(),
        ];
        for error in errors {
            let error = error.unwrap_or_else(|| panic!("{names:?}")).to_string();
            assert!(
                error.contains("never completed: remove the directory and make it again"),
                "{names:?}: {error}"
            );
        }
        assert_eq!(names_in(&dir), names);
    }
    assert!(!names_in(&dir).contains(&"MANIFEST.copy".to_owned()));
    assert_eq!(contents(&small().open(dir).unwrap()), contents(&db));
}
