//! Permissions of what a store and a guard create.

use crate::support::{Sequence, fast_dir, fill_deep, tiny};
use sidebloom::guard::{Change, Guard, GuardOptions, Source};
use sidebloom::{Error, FilterPolicy};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A database of a hundred rows.
struct Rows;

impl Source for Rows {
    fn stream(&mut self, visit: &mut dyn FnMut(&[u8]) -> sidebloom::Result<()>) -> sidebloom::Result<()> {
        (0..100).try_for_each(|i| visit(format!("row {i}").as_bytes()))
    }

    fn count(&mut self, _key: &[u8]) -> sidebloom::Result<u64> {
        Ok(1)
    }

    fn apply(&mut self, _changes: &[Change<'_>]) -> sidebloom::Result<()> {
        Ok(())
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Checks a directory and everything in it.
#[track_caller]
fn assert_modes(dir: &Path, files: u32, dirs: u32) {
    assert_eq!(mode_of(dir), dirs, "{}", dir.display());
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            assert_modes(&entry, files, dirs)
        } else {
            assert_eq!(mode_of(&entry), files, "{}", entry.display())
        }
    }
}

/// Every file that a store creates, early and late, has the chosen mode.
#[test]
fn every_file_that_a_store_creates_has_the_mode_that_was_chosen() {
    for (files, dirs) in [(0o600, 0o700), (0o640, 0o750), (0o666, 0o777)] {
        let dir = fast_dir();
        let (store, copy) = (dir.path().join("above").join("store"), dir.path().join("copy"));
        for _ in 0..2 {
            let db = tiny().mode(files).open(&store).unwrap();
            fill_deep(&db, 1);
            db.rebuild_filters(FilterPolicy::bits_per_key(5.0)).unwrap();
            (1..=20).for_each(|i| db.write(Sequence(1).batch(i)).unwrap());
            drop(db); // So that no file disappears.
            assert_modes(&dir.path().join("above"), files, dirs);
        }
        let db = tiny().mode(files).open(&store).unwrap();
        db.checkpoint(&copy).unwrap();
        assert_modes(&copy, files, dirs);
        drop(db);
        fs::remove_file(store.join("MANIFEST")).unwrap();
        tiny().mode(files).repair(&store).unwrap();
        assert_modes(&store, files, dirs);
    }
}

#[test]
fn a_private_store_stays_private_when_it_is_opened_without_a_mode() {
    let dir = fast_dir();
    let store = dir.path().join("store");
    tiny().mode(0o600).open(&store).unwrap().put("a", "1").unwrap();
    let db = tiny().open(&store).unwrap();
    fill_deep(&db, 1);
    db.checkpoint(dir.path().join("copy")).unwrap();
    drop(db);
    assert_modes(&store, 0o600, 0o700);
    assert_modes(&dir.path().join("copy"), 0o600, 0o700);
    fs::remove_file(store.join("MANIFEST")).unwrap();
    tiny().repair(&store).unwrap();
    assert_modes(&store, 0o600, 0o700);
}

#[test]
fn a_mode_without_which_the_owner_cannot_go_on_is_refused() {
    let dir = fast_dir();
    for mode in [0, 0o400, 0o200, 0o066, 0o1600, u32::MAX] {
        let refused = tiny().mode(mode).open(dir.path().join("store")).map(drop).unwrap_err();
        assert!(matches!(refused, Error::InvalidArgument(_)), "{refused}");
        let refused = GuardOptions::new().mode(mode).build(dir.path().join("guard"), [b""; 0]).map(drop);
        assert!(matches!(refused.unwrap_err(), Error::InvalidArgument(_)));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_secret_key_of_a_guard_is_its_owner_s_unless_a_mode_says_otherwise() {
    let dir = fast_dir();
    let path = dir.path().join("guard");
    drop(GuardOptions::new().build_from(&path, &mut Rows).unwrap());
    assert_eq!(mode_of(&path.join("GUARD")), 0o600);
    let guard = GuardOptions::new().mode(0o640).open(&path).unwrap();
    guard.refresh(&mut Rows).unwrap();
    drop(guard);
    assert_eq!(mode_of(&path.join("GUARD")), 0o640);
    Guard::open(&path).unwrap().refresh(&mut Rows).unwrap();
    assert_eq!(mode_of(&path.join("GUARD")), 0o600);
}
