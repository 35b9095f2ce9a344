//! What a guard's reader keeps and remembers, and what a bucket can make it do.

use crate::support::{Fault, Watched, all_maybe, by_hand, files_of, guard, reader};
use sidebloom_remote::guard::{GuardPublisher, RemoteGuard};
use sidebloom_remote::{Error, TakeOver};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

const SECOND: &str = "songs/guard/gen/00000000000000000002";

#[test]
fn i1_an_older_state_is_an_error_that_names_both_also_after_a_restart() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    published.guard.insert("Freebird").unwrap();
    publisher.publish().unwrap();
    let remote = reader(&store, &published.dir);
    let second = store.bytes(SECOND);
    store.remove(SECOND);
    store.replace("songs/guard/latest", b"9".to_vec());
    let is_named = |error: &Error| {
        let shown = error.to_string();
        matches!(error, Error::WentBack { seen: 2, found: 1, .. }) && shown.contains("from generation 2 to 1")
    };
    let error = remote.refresh().unwrap_err();
    assert!(is_named(&error), "{error}");
    assert!(all_maybe(&remote, &["Freebird"]), "a wrong absent");
    drop(remote);
    let open = || RemoteGuard::open(store.place(), published.dir.path().join("cache"), by_hand());
    let error = open().err().unwrap();
    assert!(is_named(&error), "{error}");
    store.replace(SECOND, second);
    assert!(all_maybe(&open().unwrap(), &["Freebird"]));
}

#[test]
fn a_store_that_always_has_a_next_state_holds_nobody_for_ever() {
    let (published, store) = (guard(), Watched::new());
    published.publisher(&store).publish().unwrap();
    let remote = reader(&store, &published.dir);
    store.fail(Fault::AlwaysNext);
    let errors = [
        remote.refresh().unwrap_err(),
        RemoteGuard::open(store.place(), published.dir.path().join("fresh"), by_hand()).err().unwrap(),
        GuardPublisher::new(&published.guard, store.place(), TakeOver::Yes).err().unwrap(),
    ];
    assert!(errors.iter().all(|error| matches!(error, Error::Endless { .. })), "{errors:?}");
    assert!(all_maybe(&remote, &published.keys));
}

#[test]
fn files_of_the_user_in_a_guards_cache_stay_and_ours_are_private() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    let cache = published.dir.path().join("cache");
    let remote = reader(&store, &published.dir);
    let files = files_of(&cache);
    let dir = files[0].parent().unwrap();
    for file in files.iter().map(|file| file.as_path()).chain([dir, &cache]) {
        let mode = fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if file.is_dir() { 0o700 } else { 0o600 }, "{}", file.display());
    }
    let hash = "0".repeat(64);
    let theirs: Vec<_> = [format!("{hash}-report.pdf"), format!("{hash}.new"), "notes.tmp".into()]
        .iter()
        .flat_map(|name| [dir.join(name), cache.join(name)])
        .collect();
    let ours = [dir.join(hash), dir.join("1-2.tmp")];
    for file in theirs.iter().chain(&ours) {
        fs::write(file, "old").unwrap();
        let old = SystemTime::now() - Duration::from_secs(7200);
        fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    published.guard.insert("Freebird").unwrap();
    publisher.publish().unwrap();
    assert!(remote.refresh().unwrap());
    assert!(theirs.iter().all(|file| file.exists()) && !ours.iter().any(|file| file.exists()));
}

#[test]
fn links_in_a_guards_cache_and_beside_a_guard_lead_nowhere() {
    let (published, store) = (guard(), Watched::new());
    let victim = published.dir.path().join("authorized_keys");
    fs::write(&victim, "a key").unwrap();
    published.publisher(&store).publish().unwrap();
    let lineage = |name: &std::ffi::OsStr| name.to_str().unwrap() == "PUBLISHED";
    let found = fs::read_dir(published.guard.path()).unwrap().map(|entry| entry.unwrap());
    let lineage = found.into_iter().find(|entry| lineage(&entry.file_name())).unwrap().path();
    symlink(
        &victim,
        lineage.with_file_name(format!("{}.tmp", lineage.file_name().unwrap().to_str().unwrap())),
    )
    .unwrap();
    published.publisher(&store).publish().unwrap();
    fs::remove_file(&lineage).unwrap();
    symlink(&victim, &lineage).unwrap();
    assert!(GuardPublisher::new(&published.guard, store.place(), TakeOver::No).is_err());
    drop(reader(&store, &published.dir));
    for file in files_of(&published.dir.path().join("cache")) {
        fs::remove_file(&file).unwrap();
        symlink(&victim, &file).unwrap();
        let open = RemoteGuard::open(store.place(), published.dir.path().join("cache"), by_hand());
        assert!(open.is_err(), "{}", file.display());
        fs::remove_file(&file).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "a key");
}
