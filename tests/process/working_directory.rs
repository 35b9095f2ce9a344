//! I13: a store opened by a relative path stays where it is when the working directory changes.

use crate::support::{STORE, Sequence, assert_holds, fast_dir, tiny};
use crate::{assert_ran, command_for, exclusive};
use std::env;
use std::path::PathBuf;

const DIR: &str = "SIDEBLOOM_TEST_WORKING_DIRECTORIES";

/// In its own process, because all threads of a process share its working directory.
#[test]
fn i13_a_relative_path_stays_put_when_the_working_directory_changes() {
    let dir = fast_dir();
    let _forking = exclusive();
    let mut child = command_for(module_path!(), "writes_from_two_working_directories");
    let output = child.env(DIR, dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ran(&output.stdout);
}

#[test]
fn writes_from_two_working_directories() {
    let Some(dir) = env::var_os(DIR).map(PathBuf::from) else { return };
    let [one, two] = ["one", "two"].map(|name| dir.join(name));
    for (place, sequence) in [(&one, Sequence(1)), (&two, Sequence(2))] {
        std::fs::create_dir_all(place).unwrap();
        env::set_current_dir(place).unwrap();
        let db = tiny().open(STORE).unwrap();
        (1..=100).for_each(|i| db.write(sequence.batch(i)).unwrap());
    }
    env::set_current_dir(&one).unwrap();
    let db = tiny().open(STORE).unwrap();
    let follower = tiny().follow(true).open(STORE).unwrap();
    env::set_current_dir(&two).unwrap();
    (101..=400).for_each(|i| db.write(Sequence(1).batch(i)).unwrap());
    db.compact().unwrap();
    follower.catch_up().unwrap();
    for db in [&db, &follower] {
        assert_holds(db, &Sequence(1).after(400));
    }
    db.checkpoint("copy").unwrap();
    assert!(db.verify().unwrap().is_ok());
    drop((db, follower));
    let places = [(one.join(STORE), 1, 400), (two.join(STORE), 2, 100), (two.join("copy"), 1, 400)];
    for (path, seed, batches) in places {
        let db = tiny().create_if_missing(false).open(&path).unwrap();
        assert_holds(&db, &Sequence(seed).after(batches));
        assert!(db.verify().unwrap().is_ok(), "{}", path.display());
    }
}
