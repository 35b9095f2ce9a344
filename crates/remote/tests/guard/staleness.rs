//! A guard that is too old, or of unknown age, denies nothing.

use crate::support::{Fault, Watched, all_maybe, by_hand, denied, guard};
use sidebloom_remote::Error;
use sidebloom_remote::guard::RemoteGuard;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn i1_past_the_bound_every_answer_is_maybe_until_a_newer_state_arrives() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    publisher.publish().unwrap();
    let bound = Duration::from_millis(700);
    let options = by_hand().max_staleness(bound);
    let remote = RemoteGuard::open(store.place(), published.dir.path().join("cache"), options).unwrap();
    assert!(denied(&remote, 100) > 97, "{:?}", remote.staleness());
    // The publisher stops, and the bucket becomes unreachable.
    store.fail(Fault::Unreachable);
    assert!(matches!(remote.refresh(), Err(Error::Bucket { .. })));
    assert!(denied(&remote, 100) > 97, "it goes on up to the bound");
    sleep(bound);
    assert!(remote.staleness().unwrap() > bound);
    assert_eq!(denied(&remote, 100), 0);
    assert!(all_maybe(&remote, &published.keys));
    let stats = remote.stats();
    assert_eq!((stats.too_old, stats.failed_refreshes), (100 + 2 * published.keys.len() as u64, 1));
    assert!(stats.last_error.is_some());
    store.fail(Fault::None);
    assert!(!remote.refresh().unwrap());
    assert_eq!(denied(&remote, 100), 0, "a store that answers makes no state younger");
    publisher.publish().unwrap();
    assert!(remote.refresh().unwrap());
    assert!(denied(&remote, 100) > 97 && remote.stats().last_error.is_none());
    let unbounded = RemoteGuard::open(store.place(), published.dir.path().join("cache"), by_hand()).unwrap();
    sleep(bound);
    assert!(denied(&unbounded, 100) > 97);
}

/// With a wrong clock, the guard counts as too old, and the publisher reports it.
#[test]
fn a_wrong_clock_counts_as_past_the_bound_and_the_publisher_says_so() {
    let (published, store) = (guard(), Watched::new());
    let mut publisher = published.publisher(&store);
    // A bucket behind its publisher, and a bucket ahead of its reader.
    for ahead in [-100, 100] {
        store.ahead.store(ahead, Relaxed);
        match publisher.publish() {
            Err(Error::ClockSkew { skew, .. }) => assert!(skew.as_secs().abs_diff(100) < 10, "{skew:?}"),
            other => panic!("{other:?}"),
        }
        let options = by_hand().max_staleness(Duration::from_secs(1000));
        let remote = RemoteGuard::open(store.place(), published.dir.path().join("cache"), options).unwrap();
        assert_eq!((denied(&remote, 100), remote.staleness()), (0, None), "{ahead}");
        store.ahead.store(0, Relaxed);
        publisher.publish().unwrap();
        assert!(remote.refresh().unwrap() && denied(&remote, 100) > 97);
    }
}
