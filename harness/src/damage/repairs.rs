//! Repair of damaged stores: what is not damaged comes back, nothing is invented, and the report says what
//! may be lost.

use super::logs::damaged_operations;
use super::store::{Kind, Store};
use super::wound::Wounds;
use crate::support::{Contents, SimFs, contents};
use sidebloom::{Error, RepairReport};
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

/// Repairs a copy of the store. `opened` are its contents without a repair, if it can be opened and read.
pub fn check(store: &Store, wounds: &Wounds<'_>, fs: &SimFs, opened: Option<&Contents>) {
    let report =
        store.options(fs).repair(&store.dir).unwrap_or_else(|error| panic!("repair failed: {error}"));
    let is_gone = wounds.all.iter().any(|wound| wound.harm.bytes.is_none());
    // A manifest that names a missing segment is set aside and reported.
    let set_aside =
        report.set_aside.iter().filter(|why| !(is_gone && why.to_string().contains("which is missing")));
    let found_missing = set_aside.clone().count() < report.set_aside.len();
    // Without the manifest, a segment half-written when the process was killed counts as damaged.
    set_aside.filter(|why| !is_leftover(store, wounds, why)).for_each(|why| wounds.check_file(why));
    damaged_files_stay(wounds, fs);
    let db = store.options(fs).read_only(true).open(&store.dir);
    let db = db.unwrap_or_else(|error| panic!("cannot open it after {report:?}: {error}"));
    let found = contents(&db);
    nothing_is_invented(store, &found);
    let differs: Vec<&[u8]> = store
        .universe
        .iter()
        .map(Vec::as_slice)
        .filter(|key| store.expected.get(*key) != found.get(*key))
        .collect();
    match wounds.kind {
        Kind::Log => logs(store, wounds, &found, opened, &report),
        Kind::Segment => {
            if !found_missing {
                announced(&report, &differs);
            }
            only_damaged_blocks_are_lost(wounds, &differs);
        }
        Kind::Manifest if wounds.others_too => announced(&report, &differs),
        Kind::Manifest | Kind::Sidecar => {
            assert!(differs.is_empty(), "rows are lost, though every segment and log is sound: {report:?}");
        }
    }
    // The unsynced end of a log may be lost silently, and a whole log.
    if wounds.kind != Kind::Log && report.lost.is_empty() && report.logs.is_none() && !found_missing {
        store.beside.check(&db, store.ops.len()).unwrap_or_else(|error| panic!("the keyspace: {error}"));
    }
    drop(db);
    works(store, fs, found);
}

/// Whether the error names a file that the store does not need, or reports a lost log whose operations were
/// in such a file.
fn is_leftover(store: &Store, wounds: &Wounds<'_>, error: &Error) -> bool {
    let Error::Corruption { file, what, .. } = error else { return false };
    if wounds.kind == Kind::Log && store.has_leftovers && what.contains("but the first log begins at") {
        return true;
    }
    let mut needed = store.segments.iter().chain(&store.logs).chain(&store.manifests);
    needed.all(|needed| needed.path != *file)
}

/// Damaged files still exist, by their own name or as `*.damaged`. A manifest may be damaged, but valid.
fn damaged_files_stay(wounds: &Wounds<'_>, fs: &SimFs) {
    if wounds.kind == Kind::Manifest && wounds.others_too {
        return;
    }
    for wound in &wounds.all {
        let path = &wound.victim.path;
        let kept = [path.clone(), PathBuf::from(format!("{}.damaged", path.display()))];
        let is_kept = kept.iter().any(|path| fs.read(path) == wound.harm.bytes);
        assert!(is_kept, "the damaged {} is gone", path.display());
    }
}

fn nothing_is_invented(store: &Store, found: &Contents) {
    for (key, value) in found {
        let had = store.history.get(key).is_some_and(|values| values.contains(value));
        assert!(had, "repair invented a value of \"{}\"", key.escape_ascii());
    }
}

/// Every key whose answer changed is in a range that the report names.
fn announced(report: &RepairReport, differs: &[&[u8]]) {
    for key in differs {
        let is_named =
            report.lost.iter().any(|lost| (lost.first.clone(), lost.last.clone()).contains(&key.to_vec()));
        assert!(is_named, "\"{}\" changed, but {:?} does not say so", key.escape_ascii(), report.lost);
    }
}

/// Keys whose blocks did not change have the right values.
fn only_damaged_blocks_are_lost(wounds: &Wounds<'_>, differs: &[&[u8]]) {
    let mut damaged = Vec::new();
    for wound in &wounds.all {
        let Some(layout) = &wound.victim.layout else { continue };
        // Coded values need one of the two symbol tables, at the start of the file and near its end.
        let symbols = layout.symbols.as_ref().filter(|part| !wound.is_intact(&part.bytes));
        if symbols.is_some() && !wound.is_intact(&layout.rest.bytes) {
            damaged.push((Bound::Unbounded, Bound::Unbounded));
        }
        for part in layout.data.iter().chain(&layout.ranges).filter(|part| !wound.is_intact(&part.bytes)) {
            let after = part.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
            damaged.push((after, Bound::Included(part.up_to.clone())));
        }
    }
    for key in differs {
        let is_damaged = damaged.iter().any(|range| range.contains(&key.to_vec()));
        assert!(is_damaged, "\"{}\" has another value, though its block is sound", key.escape_ascii());
    }
}

fn logs(
    store: &Store,
    wounds: &Wounds<'_>,
    found: &Contents,
    opened: Option<&Contents>,
    report: &RepairReport,
) {
    if let Some(opened) = opened {
        assert!(found == opened, "repair changed the contents of a store that can be opened: {report:?}");
        return;
    }
    let damaged = damaged_operations(wounds);
    let is_touched = |key: &[u8]| damaged.iter().any(|&op| store.ops[op].concerns(key));
    let kept = store.without(&damaged);
    for key in store.universe.iter().filter(|key| !is_touched(key)) {
        assert!(
            kept.get(key) == found.get(key),
            "\"{}\" changed, though each of its operations is in a sound record: {report:?}",
            key.escape_ascii()
        );
    }
    if *found != store.expected {
        assert!(
            report.logs.is_some() && !report.lost.is_empty(),
            "rows of logs are lost silently: {report:?}"
        );
    }
}

/// The repaired store works, and needs no further repair.
fn works(store: &Store, fs: &SimFs, mut expected: Contents) {
    let again = store.options(fs).repair(&store.dir).unwrap();
    assert!(
        !again.rebuilt && again.set_aside.is_empty() && again.lost.is_empty(),
        "the second repair: {again:?}"
    );
    let db = store.options(fs).open(&store.dir).unwrap();
    assert!(contents(&db) == expected, "other contents after the repaired store was opened for writing");
    db.put(b"after the repair", b"new").unwrap();
    expected.insert(b"after the repair".to_vec(), b"new".to_vec());
    db.compact().unwrap();
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "after repair and compaction: {:?}", report.problems);
    drop(db);
    let db = store.options(fs).read_only(true).open(&store.dir).unwrap();
    assert!(contents(&db) == expected, "other contents after repair, compaction and reopening");
}
