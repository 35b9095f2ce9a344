//! Damaged sidecars change no answer (I2): each is counted, logged once, reported by `verify`, and rebuilt.

use super::reads::Reads;
use super::store::Store;
use super::wound::Wounds;
use crate::support::{Rng, SimFs, eventually, warnings_about};
use sidebloom::Db;

/// How many of the damaged sidecars are unusable, at least and at most. An older filter of the same segment
/// is as good.
fn unusable(store: &Store, wounds: &Wounds<'_>) -> (usize, usize) {
    if !store.has_filters() {
        return (0, 0);
    }
    let is_older = |bytes: &Vec<u8>| {
        let mut others = wounds.all.iter().flat_map(|wound| &wound.victim.target.others);
        others.any(|other| **other == *bytes)
    };
    let all = wounds.all.len();
    let older = wounds.all.iter().filter(|wound| wound.harm.bytes.as_ref().is_some_and(is_older)).count();
    let missing = store.segments.len() - store.sidecars.len();
    (all - older + missing, all + missing)
}

/// Reads, verifies and counts, in a store opened read-only.
pub fn read_only(rng: &mut Rng, store: &Store, wounds: &Wounds<'_>, fs: &SimFs) {
    let before = warnings(wounds);
    let db = store.options(fs).read_only(true).open(&store.dir);
    let db = db.unwrap_or_else(|error| panic!("a damaged sidecar kept the store from opening: {error}"));
    let reads = Reads { db: &db, store, wounds, expected: &store.expected, may_fail: false };
    // Reading every key each time would take 40 % longer in total; this takes 20 %.
    let all = rng.percent(50);
    let read = |rng: &mut Rng| if all { reads.all() } else { reads.around(rng) };
    read(rng);
    if !rng.percent(30) {
        return;
    }
    db.warm().unwrap();
    let (least, most) = unusable(store, wounds);
    eventually("each bad sidecar is counted", || db.stats().filters_unavailable as usize >= least);
    read(rng);
    let report = db.verify().unwrap();
    assert!(report.is_ok(), "verify has problems with the data: {:?}", report.problems);
    let listed = report.unusable_filters.len();
    assert!((least..=most).contains(&listed), "verify lists {:?}", report.unusable_filters);
    let counted = db.stats().filters_unavailable as usize;
    assert!((least..=most).contains(&counted), "{counted} are counted, but {least} to {most} are damaged");
    let warned = warnings(wounds) - before;
    let missing = if store.has_filters() { store.segments.len() - store.sidecars.len() } else { 0 };
    assert!(warned + missing == counted, "{warned} warnings, but {counted} bad sidecars are counted");
}

fn warnings(wounds: &Wounds<'_>) -> usize {
    wounds.all.iter().map(|wound| warnings_about(&wound.victim.path)).sum()
}

/// Opens the store for writing: the damaged sidecars are rebuilt.
pub fn heals(store: &Store, wounds: &Wounds<'_>, fs: &SimFs) {
    let db = store.options(fs).open(&store.dir);
    let db = db.unwrap_or_else(|error| panic!("a damaged sidecar kept the store from opening: {error}"));
    Reads { db: &db, store, wounds, expected: &store.expected, may_fail: false }.all();
    if store.has_filters() {
        eventually("every sidecar is sound again", || is_whole(&db));
        let report = db.verify().unwrap();
        assert!(report.is_ok() && report.unusable_filters.is_empty(), "after rebuilding: {report:?}");
    }
    Reads { db: &db, store, wounds, expected: &store.expected, may_fail: false }.all();
    drop(db);
    let db = store.options(fs).read_only(true).open(&store.dir).unwrap();
    db.warm().unwrap();
    let bad = db.stats().filters_unavailable;
    assert!(bad == 0, "{bad} sidecars are unusable after they were rebuilt");
}

fn is_whole(db: &Db) -> bool {
    let levels = db.stats().levels;
    let filters: usize = levels.iter().map(|level| level.filters).sum();
    filters == levels.iter().map(|level| level.segments).sum::<usize>()
}
