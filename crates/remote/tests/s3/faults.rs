//! An object store that fails: retries succeed, everything else ends in a named error in bounded time, and
//! nothing is lost.

use crate::bucket::{Bucket, contents, fill};
use crate::moto::{RETRIES, TIMEOUT};
use crate::proxy::{Fault, Rule};
use sidebloom_remote::Error;
use std::time::{Duration, Instant};

/// Failures that a client survives.
const PASSING: [Fault; 5] = [
    Fault::Status(500, "InternalError"),
    Fault::Status(503, "SlowDown"),
    Fault::Status(429, "TooManyRequests"),
    Fault::Short,
    Fault::Reset,
];

/// All retries of one request, each until the client times out, and the pauses between them.
const BOUND: Duration = Duration::from_millis(TIMEOUT.as_millis() as u64 * (RETRIES as u64 + 1) + 4000);

#[test]
fn reading_gets_over_failures_of_each_kind_of_object() {
    let Some(bucket) = Bucket::new("reading") else { return };
    let db = bucket.open("store");
    fill(&db, 0..500, "value");
    bucket.publisher(&db).unwrap().publish().unwrap();
    for fault in PASSING {
        for kind in ["latest", "gen", "manifest", "filter", "segment"] {
            bucket.proxy.take();
            bucket.proxy.inject(Rule::new("GET", kind, fault).times(2));
            assert_eq!(bucket.published(), contents(&db), "{kind}: {fault:?}");
            let failed = bucket.proxy.take().iter().filter(|request| request.fault.is_some()).count();
            assert_eq!(failed, 2, "{kind}: {fault:?}");
            bucket.proxy.heal();
        }
    }
}

#[test]
fn publishing_gets_over_failures_of_each_kind_of_object() {
    let Some(bucket) = Bucket::new("publishing") else { return };
    let db = bucket.open("store");
    fill(&db, 0..1000, "value");
    let mut publisher = bucket.publisher(&db).unwrap();
    let mut generation = 0;
    for fault in PASSING.into_iter().filter(|fault| *fault != Fault::Short) {
        for kind in ["segment", "filter", "manifest", "gen", "latest"] {
            db.put(format!("{kind} {fault:?}"), "published").unwrap();
            bucket.proxy.inject(Rule::new("PUT", kind, fault).times(1));
            // The client does not retry the creation of a generation by itself if the connection breaks; then
            // nothing was published.
            let outcome = publisher.publish().or_else(|error| match (kind, fault) {
                ("gen", Fault::Reset) => publisher.publish(),
                _ => Err(error),
            });
            generation += 1;
            assert_eq!(outcome.unwrap().generation, generation, "{kind}: {fault:?}");
            let failed = bucket.proxy.take().iter().filter(|request| request.fault.is_some()).count();
            assert_eq!(failed, 1, "{kind}: {fault:?}");
            bucket.proxy.heal();
        }
    }
    assert_eq!(bucket.published(), contents(&db));
}

/// A block that cannot be fetched is a named error, in bounded time, and never a missing key.
#[test]
fn a_block_that_cannot_be_fetched_is_an_error_and_never_a_missing_key() {
    let Some(bucket) = Bucket::new("blocks") else { return };
    let db = bucket.open("store");
    fill(&db, 0..3000, "value");
    bucket.publisher(&db).unwrap().publish().unwrap();
    let reader = bucket.read().unwrap();
    let late = Fault::Late(2 * TIMEOUT);
    for fault in PASSING.into_iter().chain([late, Fault::Status(404, "NoSuchKey")]) {
        bucket.proxy.inject(Rule::new("GET", "segment", fault));
        let started = Instant::now();
        let error = reader.db().get("key00000017").unwrap_err();
        assert!(started.elapsed() < BOUND, "{fault:?}: {:?}", started.elapsed());
        let behind = Error::behind(&error);
        let is_named = match fault {
            Fault::Status(404, _) => matches!(behind, Some(Error::Expired { .. })),
            _ => {
                matches!(behind, Some(Error::Bucket { op: "read", object, .. }) if object.contains("segment/"))
            }
        };
        assert!(is_named, "{fault:?}: {error:?}");
        bucket.proxy.heal();
        assert_eq!(reader.db().get("key00000017").unwrap().unwrap(), *b"value 17", "{fault:?}");
        assert_eq!(reader.db().stats().segments_quarantined, 0, "{fault:?}");
    }
    assert_eq!(contents(reader.db()), contents(&db));
}

/// A bucket that fails for long is a named error, in bounded time, and loses nothing.
#[test]
fn a_bucket_that_fails_for_long_is_an_error_in_time_and_loses_nothing() {
    let Some(bucket) = Bucket::new("outage") else { return };
    let db = bucket.open("store");
    fill(&db, 0..3000, "first");
    let mut publisher = bucket.publisher(&db).unwrap();
    publisher.publish().unwrap();
    let (first, reader) = (contents(&db), bucket.read().unwrap());
    fill(&db, 2000..4000, "second");
    for fault in [Fault::Status(503, "SlowDown"), Fault::Reset, Fault::Late(2 * TIMEOUT)] {
        bucket.proxy.inject(Rule::new("", "", fault));
        let started = Instant::now();
        for error in [publisher.publish().err(), reader.refresh().err(), bucket.read().err()] {
            assert!(matches!(error, Some(Error::Bucket { .. })), "{fault:?}: {error:?}");
        }
        assert!(started.elapsed() < 3 * BOUND, "{fault:?}: {:?}", started.elapsed());
        // The store still works.
        db.put(format!("{fault:?}"), "written").unwrap();
        bucket.proxy.heal();
        assert_eq!(contents(reader.db()), first, "{fault:?}");
    }
    std::thread::sleep(2 * TIMEOUT); // Late requests finish.
    assert_eq!(publisher.publish().unwrap().generation, 2);
    assert!(reader.refresh().unwrap());
    assert_eq!(contents(reader.db()), contents(&db));
}
