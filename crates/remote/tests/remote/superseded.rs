//! One lineage: only the creator of the newest generation can continue.

use super::{Bench, contents, fill, small};
use sidebloom::Error as StoreError;
use sidebloom_remote::{Error, Publisher, Reader, TakeOver};
use std::sync::Barrier;
use std::time::Duration;

/// Of two writers that race, one wins, and the other's store becomes read-only.
#[test]
fn i5_of_two_racing_writers_one_wins_and_the_other_takes_no_more_writes() {
    let rounds = if std::env::var_os("SIDEBLOOM_TEST_LONG").is_some() { 1000 } else { 60 };
    let bench = Bench::on_disk();
    let db = bench.open("0");
    fill(&db, 0..100, "value");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    drop(db);
    for round in 1..=rounds {
        let (a, b) = (format!("{round}a"), format!("{round}b"));
        for name in [&a, &b] {
            sidebloom_remote::clone(&bench.remote(), bench.path(name), &mut |_, _| ()).unwrap();
        }
        let start = Barrier::new(2);
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let race = |name: &String| {
                let (bench, start, name) = (&bench, &start, name.clone());
                scope.spawn(move || {
                    let db = small().open(bench.path(&name)).unwrap();
                    db.put("winner", &name).unwrap();
                    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
                    start.wait();
                    (publisher.publish(), db, name)
                })
            };
            let racers = [race(&a), race(&b)];
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        let mut winners = 0;
        for (outcome, db, name) in &outcomes {
            match outcome {
                Ok(published) => {
                    assert_eq!(published.generation, round + 1);
                    db.put("still", "writable").unwrap();
                    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
                    assert_eq!(reader.db().get("winner").unwrap().as_deref(), Some(name.as_bytes()));
                    winners += 1;
                }
                Err(Error::Superseded { generation, .. }) => {
                    assert_eq!(*generation, round + 1);
                    let refused = db.put("x", "1").unwrap_err();
                    assert!(
                        matches!(&refused, StoreError::Poisoned { cause } if cause.contains("superseded")),
                        "{refused}"
                    );
                }
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(winners, 1, "round {round}");
        drop(outcomes);
        for name in [a, b] {
            std::fs::remove_dir_all(bench.path(&name)).unwrap();
        }
        let lineage = Publisher::new(&bench.open("last"), bench.remote(), TakeOver::No);
        assert!(matches!(lineage.err(), Some(Error::Foreign { .. })), "another store");
    }
}

/// A crash between any two writes leaves the last generation intact, and the next publication works.
#[test]
fn a_crash_between_any_two_writes_leaves_the_last_generation() {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..3000, "first");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    let first = contents(&db);
    fill(&db, 2000..6000, "second");
    let mut stopped = 0;
    for writes in 0.. {
        bench.store.stop_after_writes(Some(writes));
        // Like a new process, which knows only what is in the directory.
        let attempt =
            Publisher::new(&db, bench.remote(), TakeOver::No).and_then(|mut publisher| publisher.publish());
        bench.store.stop_after_writes(None);
        let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
        if let Ok(published) = attempt {
            assert_eq!(published.generation, 2);
            assert_eq!(contents(reader.db()), contents(&db));
            break;
        }
        stopped += 1;
        let found = contents(reader.db());
        assert!(found == first || found == contents(&db), "after {writes} writes");
        if found != first {
            break; // Only the hint was missing.
        }
    }
    assert!(stopped >= 4, "{stopped}");
    let mut next = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    assert_eq!(next.publish().unwrap().generation, 3);
    next.collect(Duration::ZERO).unwrap();
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    assert_eq!(contents(reader.db()), contents(&db));
}

/// A store that does not descend from the published generations is refused, unless it takes over.
#[test]
fn what_does_not_descend_from_the_published_must_take_over_or_is_refused() {
    let bench = Bench::on_disk();
    let db = bench.open("store");
    db.put("a", "1").unwrap();
    db.checkpoint(bench.path("copy")).unwrap();
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    let copy = bench.open("copy");
    copy.put("b", "2").unwrap();
    let refused = Publisher::new(&copy, bench.remote(), TakeOver::No).err();
    assert!(
        matches!(&refused, Some(Error::Foreign { what, .. }) if what.contains("take over")),
        "{refused:?}"
    );
    let mut takes_over = Publisher::new(&copy, bench.remote(), TakeOver::Yes).unwrap();
    assert_eq!(takes_over.publish().unwrap().generation, 2);
    assert!(matches!(publisher.publish(), Err(Error::Superseded { generation: 2, .. })));
    assert!(matches!(db.put("c", "3"), Err(StoreError::Poisoned { .. })));
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    assert_eq!(contents(reader.db()), contents(&copy));
}

/// Publishes `count` generations of a clone, and collects all but the last.
fn overtaken(bench: &Bench, name: &str, count: u32) -> (sidebloom::Db, Publisher) {
    sidebloom_remote::clone(&bench.remote(), bench.path(name), &mut |_, _| ()).unwrap();
    let db = bench.open(name);
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    for i in 0..count {
        db.put(format!("theirs {i}"), "1").unwrap();
        publisher.publish().unwrap();
    }
    publisher.collect(Duration::ZERO).unwrap();
    (db, publisher)
}

/// A writer is superseded even if the generations that overtook it have been collected.
#[test]
fn i5_a_writer_is_superseded_although_what_overtook_it_is_gone() {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..100, "value");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    let (theirs, _other) = overtaken(&bench, "clone", 3);
    db.put("mine", "1").unwrap();
    let outcome = publisher.publish();
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    assert!(matches!(outcome, Err(Error::Superseded { generation: 4, .. })), "{outcome:?}");
    assert!(db.put("x", "1").is_err());
    assert_eq!(contents(reader.db()), contents(&theirs));
}

/// A writer that has not published yet is superseded even if the first generation has been collected.
#[test]
fn i5_a_writer_that_has_not_published_yet_is_superseded() {
    let bench = Bench::new();
    let late = bench.open("late");
    let mut publisher = Publisher::new(&late, bench.remote(), TakeOver::No).unwrap();
    late.checkpoint(bench.path("copy")).unwrap();
    let db = bench.open("copy");
    let mut first = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    for i in 0..3 {
        db.put(format!("theirs {i}"), "1").unwrap();
        first.publish().unwrap();
    }
    first.collect(Duration::ZERO).unwrap();
    let outcome = publisher.publish();
    assert!(matches!(outcome, Err(Error::Superseded { generation: 3, .. })), "{outcome:?}");
}

/// A reader does not confuse the blocks of the earlier writer with those of the writer that took over.
#[test]
fn i6_a_reader_does_not_mix_blocks_of_two_writers_after_a_takeover() {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..100, "before");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    sidebloom_remote::clone(&bench.remote(), bench.path("clone"), &mut |_, _| ()).unwrap();
    let clone = bench.open("clone");
    // Their next files have the same numbers, and blocks at the same offsets.
    fill(&db, 0..2000, "mine");
    fill(&clone, 0..2000, "ours");
    publisher.publish().unwrap();
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let snapshot = reader.db().snapshot();
    assert_eq!(contents(reader.db()), contents(&db));
    let mut takes_over = Publisher::new(&clone, bench.remote(), TakeOver::Yes).unwrap();
    assert_eq!(takes_over.publish().unwrap().generation, 3);
    assert!(reader.refresh().unwrap());
    assert_eq!(contents(reader.db()), contents(&clone));
    for row in snapshot.iter() {
        match row {
            Ok((_, value)) => assert!(value.starts_with(b"mine"), "{}", value.escape_ascii()),
            Err(error) => assert!(matches!(error, StoreError::Corruption { .. }), "{error}"),
        }
    }
}
