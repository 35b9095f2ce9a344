//! One publisher at a time, and what it leaves when it dies.

use crate::support::{Fault, Published, Watched, all_maybe, denied, guard, options, reader};
use sidebloom::guard::Guard;
use sidebloom_remote::guard::GuardPublisher;
use sidebloom_remote::{Error, TakeOver};
use std::path::Path;
use std::sync::Arc;

/// Copies a closed guard.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn reopen(path: &Path) -> Guard {
    options().open(path).unwrap()
}

/// A published guard, a copy of its directory, and a publisher for each.
struct Twins {
    dir: tempfile::TempDir,
    guard: Guard,
    twin: Guard,
    publisher: GuardPublisher,
    other: GuardPublisher,
}

fn twins(store: &Arc<Watched>) -> Twins {
    let Published { dir, guard, .. } = guard();
    GuardPublisher::new(&guard, store.place(), TakeOver::No).unwrap().publish().unwrap();
    let path = guard.path().to_path_buf();
    drop(guard);
    let twin = dir.path().join("twin");
    copy(&path, &twin);
    let (guard, twin) = (reopen(&path), reopen(&twin));
    let publisher = GuardPublisher::new(&guard, store.place(), TakeOver::No).unwrap();
    let other = GuardPublisher::new(&twin, store.place(), TakeOver::No).unwrap();
    Twins { dir, guard, twin, publisher, other }
}

#[test]
fn of_two_copies_that_publish_one_is_superseded_and_a_restart_goes_on() {
    let store = Watched::new();
    let Twins { dir, guard, twin, mut publisher, mut other } = twins(&store);
    guard.insert("in one").unwrap();
    twin.insert("in the other").unwrap();
    assert_eq!(publisher.publish().unwrap().number, 2);
    for _ in 0..2 {
        assert!(matches!(other.publish(), Err(Error::Superseded { generation: 2, .. })));
        assert!(matches!(other.collect(std::time::Duration::ZERO), Err(Error::Superseded { .. })));
    }
    assert!(matches!(GuardPublisher::new(&twin, store.place(), TakeOver::No), Err(Error::Foreign { .. })));
    assert_eq!(publisher.publish().unwrap().number, 3);
    drop(publisher);
    let mut publisher = GuardPublisher::new(&guard, store.place(), TakeOver::No).unwrap();
    let restarted = publisher.publish().unwrap();
    assert_eq!((restarted.number, restarted.filters), (4, 0), "what is there is not uploaded again");
    let remote = reader(&store, &dir);
    assert!(all_maybe(&remote, &["in one"]));

    let mut other = GuardPublisher::new(&twin, store.place(), TakeOver::Yes).unwrap();
    assert_eq!(other.publish().unwrap().number, 5);
    assert!(matches!(publisher.publish(), Err(Error::Superseded { generation: 5, .. })));
    assert!(remote.refresh().unwrap());
    assert!(all_maybe(&remote, &["in the other", "key 1"]));
}

/// Whichever write is the last one, the previous state is intact, and the next publisher continues.
#[test]
fn whichever_write_is_the_last_the_next_publisher_goes_on() {
    let (published, store) = (guard(), Watched::new());
    let Published { dir, guard, keys } = &published;
    published.publisher(&store).publish().unwrap();
    let remote = reader(&store, dir);
    let mut inserted = Vec::new();
    for writes in 0..5 {
        let key = format!("after {writes} writes");
        guard.insert(&key).unwrap();
        inserted.push(key);
        let mut dying = published.publisher(&store);
        store.fail(Fault::WritesAfter(writes));
        // A filter, a manifest, a generation and the hint.
        assert_eq!(dying.publish().is_err(), writes < 4, "{writes}");
        drop(dying);
        store.fail(Fault::None);
        remote.refresh().unwrap();
        assert!(all_maybe(&remote, keys) && denied(&remote, 100) > 97);
        let fresh = reader(&store, dir);
        assert_eq!(fresh.stats().state, remote.stats().state);
        published.publisher(&store).publish().unwrap();
        assert!(remote.refresh().unwrap());
        assert!(all_maybe(&remote, &inserted));
    }
}

#[test]
fn two_that_race_leave_one_line_of_states() {
    for _ in 0..30 {
        let (Published { dir, guard, .. }, store) = (guard(), Watched::new());
        let path = guard.path().to_path_buf();
        drop(guard);
        copy(&path, &dir.path().join("twin"));
        let guards = [reopen(&path), reopen(&dir.path().join("twin"))];
        let publish = |guard: &Guard| {
            let mut publisher = GuardPublisher::new(guard, store.place(), TakeOver::No).ok()?;
            let published = (0..5).map(|_| publisher.publish()).take_while(|published| match published {
                Ok(_) => true,
                Err(Error::Superseded { .. }) => false,
                Err(error) => panic!("{error}"),
            });
            Some(published.count())
        };
        let counts: Vec<Option<usize>> = std::thread::scope(|scope| {
            let threads = guards.each_ref().map(|guard| scope.spawn(move || publish(guard)));
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(counts.contains(&Some(5)), "{counts:?}");
        let states = store.names().iter().filter(|name| name.contains("/gen/")).count();
        assert_eq!(states, counts.iter().flatten().sum::<usize>(), "{counts:?}");
        assert_eq!(reader(&store, &dir).stats().state as usize, states);
    }
}

/// A publisher is superseded even if the generations that overtook it have been collected.
#[test]
fn a_publisher_is_superseded_although_what_overtook_it_was_collected() {
    let store = Watched::new();
    let Twins { dir, twin, mut publisher, mut other, .. } = twins(&store);
    for n in 0..3 {
        twin.insert(format!("in the other {n}")).unwrap();
        other.publish().unwrap();
    }
    other.collect(std::time::Duration::ZERO).unwrap();
    let outcome = publisher.publish();
    let remote = reader(&store, &dir);
    assert!(all_maybe(&remote, &["in the other 0"]), "a wrong absent, after {outcome:?}");
    assert!(matches!(outcome, Err(Error::Superseded { .. })), "{outcome:?}");
}
