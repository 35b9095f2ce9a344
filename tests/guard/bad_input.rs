//! A directory that is not a guard, or not the requested one, is refused by name and left alone.

use crate::guard_support::fine;
use sidebloom::filter::Verdict;
#[cfg(feature = "unicode")]
use sidebloom::guard::Canonical;
use sidebloom::guard::Guard;
use sidebloom::{Db, Error};
use std::fs;
use std::path::{Path, PathBuf};

fn setting() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("guard");
    drop(fine().build(&path, ["Sinnerman", "Zombie"]).unwrap());
    (dir, path)
}

#[track_caller]
fn assert_refused(outcome: Result<Guard, Error>, parts: &[&str]) {
    let error = outcome.err().expect("it should be refused").to_string();
    parts.iter().for_each(|part| assert!(error.contains(part), "\"{part}\" is not in: {error}"));
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn a_path_that_is_not_a_guard_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    assert_refused(Guard::open(at("nothing")), &["nothing", "build a guard first"]);
    fs::create_dir(at("empty")).unwrap();
    assert_refused(Guard::open(at("empty")), &["no file named GUARD"]);
    drop(Db::open(at("store")).unwrap());
    assert_refused(Guard::open(at("store")), &["store", "no file named GUARD"]);
    let strangers = files_below(&at("store"));
    assert_refused(fine().build(at("store"), ["a"]), &["store", "one of its own"]);
    assert_eq!(files_below(&at("store")), strangers, "a store is not touched");
    fs::write(at("file"), "text").unwrap();
    assert_refused(Guard::open(at("file")), &["file"]);
    assert_refused(fine().build(at("file"), ["a"]), &["file"]);
    assert_eq!(fs::read(at("file")).unwrap(), b"text");
    assert!(Db::open(at("empty")).is_ok());
}

#[test]
fn a_guard_is_not_built_over_another() {
    let (_dir, path) = setting();
    assert_refused(fine().build(&path, ["other"]), &["there is a guard already", "refresh it"]);
    assert_eq!(Guard::open(&path).unwrap().may_contain("Zombie"), Verdict::Maybe);
    assert!(Db::open(&path).is_err(), "and it is not a store");
}

#[test]
#[cfg(feature = "unicode")]
fn another_canonical_form_is_refused_and_the_guard_stays() {
    let (_dir, path) = setting();
    let folded = fine().canonical(Canonical::EXACT.fold_case());
    assert_refused(folded.open(&path), &["its keys are \"exact\"", "not \"fold\""]);
    let exact = fine().canonical(Canonical::EXACT).open(&path).unwrap();
    assert_eq!(exact.may_contain("Zombie"), Verdict::Maybe);
    assert_eq!(exact.may_contain("ZOMBIE"), Verdict::Absent);
}

#[test]
fn one_writer_at_a_time_or_any_number_of_readers() {
    let (_dir, path) = setting();
    let first = Guard::open(&path).unwrap();
    assert_refused(Guard::open(&path), &["locked"]);
    assert_refused(fine().read_only(true).open(&path), &["locked"]);
    drop(first);
    let readers = [0; 2].map(|_| fine().read_only(true).open(&path).unwrap());
    for reader in &readers {
        assert_eq!(reader.may_contain("Zombie"), Verdict::Maybe);
        assert_eq!(reader.may_contain("Freebird"), Verdict::Absent);
        assert!(matches!(reader.insert("Freebird"), Err(Error::ReadOnly)));
    }
    assert_refused(Guard::open(&path), &["locked"]);
}

#[test]
fn i6_damaged_settings_are_named_and_nothing_is_removed() {
    let (_dir, path) = setting();
    let settings = path.join("GUARD");
    let good = fs::read(&settings).unwrap();
    let files = files_below(&path);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        fs::write(&settings, &bad).unwrap();
        assert_refused(Guard::open(&path), &["GUARD"]);
    }
    let with = |at: usize, value| {
        let mut changed = good.clone();
        changed[at] = value;
        let (body, crc) = changed.split_at_mut(good.len() - 4);
        crc.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        fs::write(&settings, changed).unwrap();
        Guard::open(&path)
    };
    assert_refused(with(8, 3), &["format version 3", "newer version of sidebloom"]);
    assert_refused(with(8, 1), &["format version 1", "rebuild it"]);
    assert_refused(with(12, 9), &["GUARD", "offset 12", "8 or 16 bytes"]);
    assert_refused(with(13, 0x80), &["GUARD", "offset 13", "canonical form"]);
    assert_refused(with(14, 9), &["GUARD", "offset 14", "filter policy"]);
    assert_refused(with(15, 1), &["GUARD", "offset 15", "key hash"]);
    assert_refused(with(47, 0x7f), &["GUARD", "offset 14", "filter policy"]);
    fs::write(&settings, good).unwrap();
    assert_eq!(files_below(&path), files);
    assert_eq!(Guard::open(&path).unwrap().stats().rows, 2);
}

#[test]
fn missing_keys_are_an_error_and_are_not_replaced_by_none() {
    let (_dir, path) = setting();
    fs::rename(path.join("000001.keys"), path.with_extension("elsewhere")).unwrap();
    assert_refused(Guard::open(&path), &["000001.keys", "missing", "build it again"]);
}

#[test]
fn i2_without_filters_nothing_is_denied_and_they_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("guard");
    let keys: Vec<String> = (0..5000).map(|n| format!("title {n}")).collect();
    drop(fine().build(&path, &keys).unwrap());
    for file in files_below(&path).iter().filter(|file| file.extension().is_some_and(|e| e == "filter")) {
        fs::remove_file(file).unwrap();
    }
    let guard = Guard::open(&path).unwrap();
    assert!(keys.iter().all(|key| guard.may_contain(key) == Verdict::Maybe));
    let absent = (0..1000).filter(|n| guard.may_contain(format!("absent {n}")) == Verdict::Absent).count();
    assert!(absent > 950, "{absent} of 1000: the filters are rebuilt when a guard is opened");
    assert!(guard.stats().filters_unavailable > 0);
}

#[test]
#[cfg(feature = "unicode")]
fn a_key_that_cannot_be_folded_fails_a_build_and_is_maybe_in_a_lookup() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("guard");
    let options = || fine().canonical(Canonical::EXACT.fold_case());
    let keys: [&[u8]; 2] = [b"fine", b"caf\xe9"];
    assert_refused(options().build(&path, keys), &["caf\\xe9", "not UTF-8"]);
    assert_eq!(files_below(&path), Vec::<PathBuf>::new(), "nothing is left");
    let guard = options().build(&path, ["fine"]).unwrap();
    assert!(matches!(guard.insert(b"caf\xe9"), Err(Error::InvalidArgument(_))));
    assert_eq!(guard.may_contain(b"caf\xe9"), Verdict::Maybe);
    assert_eq!(guard.stats().rows, 1);
}

#[test]
fn long_keys_and_empty_keys_are_keys() {
    let dir = tempfile::tempdir().unwrap();
    let long = vec![b'x'; 1 << 20];
    let guard = fine().build(dir.path().join("guard"), [&b""[..], &long]).unwrap();
    assert_eq!((guard.may_contain(""), guard.may_contain(&long)), (Verdict::Maybe, Verdict::Maybe));
    assert_eq!(guard.may_contain(&long[1..]), Verdict::Absent);
    guard.remove("").unwrap();
    assert_eq!(guard.count("").unwrap(), 0);
}
