//! What is published arrives, and no more than that is sent.

use crate::support::{Published, Rows, Watched, all_maybe, by_hand, denied, guard, reader, strings};
use sidebloom::filter::Verdict;
use sidebloom_remote::guard::{GuardPublisher, RemoteGuard, RemoteGuardOptions};
use sidebloom_remote::{Error, Remote, TakeOver};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Keys arrive with the generation that has them, and stay until they are removed.
#[test]
fn i1_keys_arrive_with_their_state_and_stay_until_they_are_removed() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    let first = publisher.publish().unwrap();
    assert_eq!((first.number, first.filters), (1, 2), "the keys, and the totals");
    let remote = reader(&store, &published.dir);
    assert!(all_maybe(&remote, &published.keys));
    assert!(denied(&remote, 1000) > 990);

    published.guard.insert("Freebird").unwrap();
    assert!(!remote.refresh().unwrap(), "nothing is published yet");
    assert_eq!(remote.may_contain("Freebird"), Verdict::Absent, "as of the state");
    let second = publisher.publish().unwrap();
    assert_eq!((second.number, second.filters), (2, 1), "the new filter alone");
    assert!(second.bytes < first.bytes);
    assert!(remote.refresh().unwrap());
    assert!(all_maybe(&remote, &published.keys) && all_maybe(&remote, &["Freebird"]));

    published.guard.refresh(&mut Rows(vec!["Zombie".to_owned()])).unwrap();
    publisher.publish().unwrap();
    assert!(remote.refresh().unwrap());
    assert!(all_maybe(&remote, &["Zombie"]));
    assert_eq!(
        (remote.may_contain("Freebird"), remote.may_contain("key 1")),
        (Verdict::Absent, Verdict::Absent)
    );
    let stats = remote.stats();
    assert_eq!((stats.state, stats.filters_unavailable, stats.too_old), (3, 0, 0));
    assert!(stats.asked > 9000 && stats.absent > 990, "{stats:?}");
}

#[test]
fn lookups_send_no_request_and_an_unchanged_guard_uploads_no_filter() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    let remote = reader(&store, &published.dir);
    let before = store.requests();
    assert!(denied(&remote, 1_000_000) > 999_900);
    assert!(all_maybe(&remote, &published.keys));
    assert_eq!(store.requests(), before);
    // A publisher looks for generations on start and before the first one, each time also for version 1.
    assert_eq!(store.lists.load(Relaxed), 4);

    let as_of = remote.as_of();
    std::thread::sleep(Duration::from_millis(5));
    let again = publisher.publish().unwrap();
    assert_eq!((again.number, again.filters, again.bytes), (2, 0, 0));
    let fetched = remote.stats().bytes_fetched;
    let gets = store.gets.load(Relaxed);
    assert!(remote.refresh().unwrap() && remote.as_of() > as_of);
    assert_eq!(store.gets.load(Relaxed) - gets, 2, "the generation, and the one after it");
    assert!(!remote.refresh().unwrap());
    assert_eq!(store.gets.load(Relaxed) - gets, 4, "the next one, and the one in use");
    assert_eq!(remote.stats().bytes_fetched, fetched);
    // Another process of the machine finds the files.
    let second = reader(&store, &published.dir);
    assert_eq!(second.stats().bytes_fetched, 0);
    assert!(all_maybe(&second, &published.keys));
}

/// The sidecars below a directory.
fn sidecars(dir: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let found = paths.flat_map(|path| if path.is_dir() { sidecars(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "filter")).collect()
}

#[test]
fn i1_a_guard_without_its_filters_is_published_and_says_maybe() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    let sidecars = sidecars(published.guard.path());
    assert_eq!(sidecars.len(), 2, "the keys, and the totals");
    sidecars.iter().for_each(|file| std::fs::remove_file(file).unwrap());
    assert_eq!(publisher.publish().unwrap().filters, 0);
    let remote = reader(&store, &published.dir);
    assert_eq!(remote.stats().filters_unavailable, 2);
    assert!(all_maybe(&remote, &published.keys));
    // A hash below the smallest or above the largest is known to be missing. One of 100 rarely is.
    assert!(denied(&remote, 100) < 10);
}

#[test]
fn a_suspended_guard_suspends_its_readers() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    let remote = reader(&store, &published.dir);
    published.guard.suspend();
    publisher.publish().unwrap();
    remote.refresh().unwrap();
    assert_eq!((denied(&remote, 100), remote.stats().suspended), (0, true));
    let fresh = reader(&store, &published.dir);
    assert_eq!(denied(&fresh, 100), 0);
    published.guard.resume();
    publisher.publish().unwrap();
    for remote in [&remote, &fresh] {
        remote.refresh().unwrap();
        assert!(denied(remote, 100) > 97);
    }
}

#[test]
fn a_thread_looks_for_new_states_and_ends_with_the_last_handle() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    let options = RemoteGuardOptions::new().poll(Some(Duration::from_millis(5)));
    let remote = RemoteGuard::open(store.place(), published.dir.path().join("cache"), options).unwrap();
    published.guard.insert("Freebird").unwrap();
    publisher.publish().unwrap();
    let (started, clone) = (Instant::now(), remote.clone());
    drop(remote);
    while clone.may_contain("Freebird") == Verdict::Absent {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(clone);
    std::thread::sleep(Duration::from_millis(50));
    let before = store.requests();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(store.requests(), before);
}

/// A directory serves as an object store, and publishing works within another runtime.
#[test]
fn a_directory_is_an_object_store_also_within_another_runtime() {
    let published = guard();
    let url = format!("file://{}", published.dir.path().join("bucket").display());
    std::fs::create_dir(published.dir.path().join("bucket")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let place = || Remote::open(&url).unwrap();
        let cache = published.dir.path().join("cache");
        let none = RemoteGuard::open(place(), &cache, by_hand());
        assert!(matches!(none.err().unwrap(), Error::NotPublished { .. }));
        GuardPublisher::new(&published.guard, place(), TakeOver::No).unwrap().publish().unwrap();
        let remote = RemoteGuard::open(place(), &cache, by_hand()).unwrap();
        assert!(all_maybe(&remote, &published.keys));
    });
    for url in ["songs.guard", "ftp://host/songs"] {
        assert!(matches!(Remote::open(url), Err(Error::InvalidUrl { .. })), "{url}");
    }
}

/// A publisher of six generations, and a reader of the first.
fn with_late_reader(published: &Published, store: &Arc<Watched>) -> (GuardPublisher, RemoteGuard) {
    let mut publisher = published.publisher(store);
    publisher.publish().unwrap();
    let late = reader(store, &published.dir);
    for key in strings("later", 5) {
        published.guard.insert(key).unwrap();
        publisher.publish().unwrap();
    }
    (publisher, late)
}

#[test]
fn a_collection_leaves_the_newest_state_and_late_readers_find_it() {
    let (published, store) = (guard(), Watched::new());
    let (mut publisher, late) = with_late_reader(&published, &store);
    published.guard.refresh(&mut Rows(strings("refreshed", 100))).unwrap();
    publisher.publish().unwrap();
    assert_eq!(publisher.collect(Duration::from_secs(3600)).unwrap(), 0, "all are young");
    let before = store.names().len();
    let removed = publisher.collect(Duration::ZERO).unwrap();
    assert_eq!(removed as usize, before - store.names().len());
    assert_eq!(
        store.names().len(),
        5,
        "a generation, its manifest and filters, and the hint: {:?}",
        store.names()
    );
    assert!(late.refresh().unwrap());
    assert_eq!(late.stats().state, 7);
    let fresh = RemoteGuard::open(store.place(), published.dir.path().join("fresh"), by_hand()).unwrap();
    for remote in [&late, &fresh] {
        assert!(all_maybe(remote, &strings("refreshed", 100)) && denied(remote, 100) > 97);
    }
    published.guard.insert("one more").unwrap();
    publisher.publish().unwrap();
    assert!(late.refresh().unwrap() && all_maybe(&late, &["one more"]));
}

/// A late reader finds the newest generation even if the one in the hint was collected.
#[test]
fn a_late_reader_finds_the_newest_state_past_a_collected_hint() {
    let (published, store) = (guard(), Watched::new());
    let (mut publisher, late) = with_late_reader(&published, &store);
    publisher.collect(Duration::ZERO).unwrap();
    let hint = store.names().into_iter().find(|name| name.ends_with("latest")).unwrap();
    // As if the publisher had died before it wrote the last one.
    store.replace(&hint, b"00000000000000000005".to_vec());
    assert!(late.refresh().unwrap());
    assert!(late.stats().state == 6 && all_maybe(&late, &strings("later", 5)));
}

#[test]
fn a_state_stays_for_the_least_age_after_it_was_replaced() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    let age = Duration::from_millis(1000);
    let mut publish_and_collect = || {
        publisher.publish().unwrap();
        publisher.collect(age).unwrap();
        store.names().iter().filter(|name| name.contains("/gen/")).count()
    };
    assert_eq!(publish_and_collect(), 1);
    std::thread::sleep(age);
    assert_eq!(publish_and_collect(), 2, "the first was what readers had until now");
    std::thread::sleep(age);
    assert_eq!(publish_and_collect(), 2, "the second was");
}
