//! Generations: readers follow them, old ones are collected, and a clone holds what was published.

use super::{Bench, contents, files_of, fill, small};
use sidebloom::FilterPolicy;
use sidebloom_remote::{Error, Publisher, Reader, ReaderOptions, TakeOver};
use std::time::{Duration, Instant};

#[test]
fn a_reader_goes_on_to_the_next_generation_and_fetches_only_what_is_new() {
    let bench = Bench::on_disk();
    let db = bench.open("store");
    fill(&db, 0..20_000, "first");
    db.compact().unwrap();
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    let first = publisher.publish().unwrap();
    let reader = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let snapshot = reader.db().snapshot();
    let then = contents(&db);
    assert!(!reader.refresh().unwrap());
    fill(&db, 19_000..21_000, "second");
    db.delete_range("key00000100".."key00000200").unwrap();
    let second = publisher.publish().unwrap();
    assert!(second.bytes < first.bytes / 2, "{second:?} after {first:?}");
    bench.store.reset();
    assert!(reader.refresh().unwrap());
    assert_eq!(reader.generation(), 2);
    let requests = bench.store.requests();
    assert!(requests.get("get filter").is_none_or(|filters| *filters < first.files / 4), "{requests:?}");
    assert_eq!(contents(reader.db()), contents(&db));
    // New filters are new files of old segments.
    db.rebuild_filters(FilterPolicy::bits_per_key(16.0)).unwrap();
    bench.store.reset();
    publisher.publish().unwrap();
    let requests = bench.store.requests();
    assert!(requests["put filter"] > 5 && !requests.contains_key("put segment"), "{requests:?}");
    assert!(reader.refresh().unwrap());
    assert_eq!(contents(reader.db()), contents(&db));
    let rows: std::collections::BTreeMap<_, _> =
        snapshot.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect();
    assert_eq!(rows, then, "a snapshot of the first generation");
    assert!(!reader.refresh().unwrap());
    let age = reader.staleness();
    assert!(age.age < Duration::from_secs(60) && age.clock_skew.is_none(), "{age:?}");
}

#[test]
fn a_reader_polls_in_the_background() {
    let bench = Bench::new();
    let db = bench.open("store");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    publisher.publish().unwrap();
    let options = ReaderOptions::new().poll_every(Duration::from_millis(20));
    let reader = options.open(bench.remote(), bench.path("cache")).unwrap();
    db.put("new", "1").unwrap();
    publisher.publish().unwrap();
    let started = Instant::now();
    while reader.db().get("new").unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(30), "it never shows");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn collected_generations_expire_and_never_turn_a_key_into_a_missing_one() {
    let bench = Bench::new();
    let db = bench.open("store");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    fill(&db, 0..20_000, "first");
    db.compact().unwrap();
    publisher.publish().unwrap();
    let late = Reader::open(bench.remote(), bench.path("late")).unwrap();
    for round in 0..3 {
        fill(&db, 0..20_000, &format!("round {round}"));
        db.compact().unwrap();
        publisher.publish().unwrap();
    }
    let before = bench.objects().len();
    assert_eq!(publisher.collect(Duration::from_secs(3600)).unwrap(), 0, "all are too young");
    let removed = publisher.collect(Duration::ZERO).unwrap();
    assert!(removed > 30, "{removed}");
    assert_eq!(bench.objects().len() as u64, before as u64 - removed);
    let mut expired = 0;
    for i in 0..20_000 {
        match late.db().get(format!("key{i:08}")) {
            Ok(found) => assert_eq!(found.as_deref(), Some(format!("first {i}").as_bytes())),
            Err(error) => {
                assert!(matches!(Error::behind(&error), Some(Error::Expired { .. })), "{error}");
                expired += 1;
            }
        }
    }
    assert!(expired > 0);
    assert!(late.refresh().unwrap());
    assert_eq!(contents(late.db()), contents(&db));
    let fresh = Reader::open(bench.remote(), bench.path("fresh")).unwrap();
    assert_eq!(contents(fresh.db()), contents(&db));
    assert_eq!(fresh.generation(), 4);
}

#[test]
fn a_clone_is_a_store_that_goes_on_where_the_published_one_is() {
    let bench = Bench::on_disk();
    let db = bench.open("store");
    fill(&db, 0..10_000, "value");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    let mut last = (0, 0);
    let generation =
        sidebloom_remote::clone(&bench.remote(), bench.path("clone"), &mut |done, all| last = (done, all));
    assert_eq!(generation.unwrap(), 1);
    assert!(last.0 == last.1 && last.1 > 100_000, "{last:?}");
    let clone = small().open(bench.path("clone")).unwrap();
    assert_eq!(contents(&clone), contents(&db));
    assert!(clone.verify().unwrap().is_ok());
    clone.put("more", "1").unwrap();
    let mut publisher = Publisher::new(&clone, bench.remote(), TakeOver::No).unwrap();
    assert_eq!(publisher.publish().unwrap().generation, 2);
    let again = sidebloom_remote::clone(&bench.remote(), bench.path("clone"), &mut |_, _| ());
    assert!(again.unwrap_err().to_string().contains("already exists"));
}

#[test]
fn readers_in_one_directory_share_its_files_and_leave_none_behind() {
    let bench = Bench::new();
    let db = bench.open("store");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    fill(&db, 0..20_000, "first");
    publisher.publish().unwrap();
    let first = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    bench.store.reset();
    let second = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    assert_eq!(bench.store.requests().get("get filter"), None, "they are here already");
    fill(&db, 0..20_000, "second");
    db.compact().unwrap();
    publisher.publish().unwrap();
    assert!(first.refresh().unwrap() && second.refresh().unwrap());
    drop(first);
    assert_eq!(contents(second.db()), contents(&db));
    drop(second);
    let third = Reader::open(bench.remote(), bench.path("cache")).unwrap();
    let segments: usize = third.db().stats().levels.iter().map(|level| level.segments).sum();
    let files = files_of(&bench.path("cache"));
    let kept = files.iter().filter(|file| file.file_name().unwrap().len() == 64).count();
    assert_eq!(kept, 2 * segments + 1, "a filter and an index of each segment, and the manifest");
    assert_eq!(files.len(), kept + 3, "two locks, and the mark of the newest generation: {files:?}");
}

#[test]
fn generations_are_collected_from_the_oldest_on() {
    let bench = Bench::on_disk();
    let db = bench.open("store");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    for i in 0..30 {
        db.put(format!("{i}"), "1").unwrap();
        publisher.publish().unwrap();
    }
    bench.store.stop_after_writes(Some(10));
    let outcome = publisher.collect(Duration::ZERO);
    bench.store.stop_after_writes(None);
    let mut left: Vec<u64> =
        bench.objects().iter().filter_map(|name| name.split("gen/").nth(1)?.parse().ok()).collect();
    left.sort_unstable();
    assert!(outcome.is_err() && left.len() == 20, "{outcome:?}: {left:?}");
    let from = left[0];
    assert!(left.iter().copied().eq(from..=30), "a gap: {left:?}");
}

#[test]
fn a_generation_stays_for_the_least_age_after_it_was_replaced() {
    let bench = Bench::new();
    let db = bench.open("store");
    let mut publisher = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap();
    let age = Duration::from_millis(1000);
    let mut publish_and_collect = || {
        publisher.publish().unwrap();
        publisher.collect(age).unwrap();
        bench.objects().iter().filter(|name| name.contains("gen/")).count()
    };
    assert_eq!(publish_and_collect(), 1);
    std::thread::sleep(age);
    assert_eq!(publish_and_collect(), 2, "the first was what readers had until now");
    std::thread::sleep(age);
    assert_eq!(publish_and_collect(), 2, "the second was");
}

#[test]
fn files_of_others_stay_in_a_directory_that_a_reader_is_given() {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..100, "value");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    let other = bench.open("other");
    fill(&other, 0..5000, "other");
    other.flush().unwrap();
    let before = contents(&other);
    std::fs::write(bench.path("other").join("letter.txt"), "dear").unwrap();
    drop(Reader::open(bench.remote(), bench.path("other")).unwrap());
    assert!(bench.path("other").join("letter.txt").exists(), "a file of the user is gone");
    drop(other);
    assert_eq!(contents(&bench.open("other")), before);
}
