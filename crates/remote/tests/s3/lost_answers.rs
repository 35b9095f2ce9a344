//! Requests that the object store executed, but whose answers are lost: nothing is published twice, and no
//! writer supersedes itself.

use crate::bucket::{Bucket, contents, fill};
use crate::moto::TIMEOUT;
use crate::proxy::{Fault, Rule};
use sidebloom_remote::Error;

#[test]
fn a_generation_whose_creation_was_not_answered_is_its_writers_own() {
    let Some(bucket) = Bucket::new("unanswered-creation") else { return };
    let db = bucket.open("store");
    fill(&db, 0..1000, "value");
    let mut publisher = bucket.publisher(&db).unwrap();
    // The last one arrives after the client has given up and looked for it.
    for fault in [Fault::Unanswered, Fault::Short, Fault::Late(2 * TIMEOUT)] {
        db.put(format!("{fault:?}"), "published").unwrap();
        bucket.proxy.inject(Rule::new("PUT", "gen", fault).times(1));
        let first = publisher.publish();
        match fault {
            Fault::Late(_) => assert!(matches!(first, Err(Error::Bucket { op: "create", .. })), "{first:?}"),
            _ => assert!(first.is_ok(), "{fault:?}: {first:?}"),
        }
        std::thread::sleep(2 * TIMEOUT);
        bucket.proxy.heal();
        db.put(format!("after {fault:?}"), "published").unwrap();
        let before = publisher.generation();
        let next = publisher.publish().unwrap().generation;
        assert!(next > before, "{fault:?}: {next} after {before}");
        assert_eq!(bucket.published(), contents(&db), "{fault:?}");
    }
}

/// A new publisher continues after one that died before it learnt of its success.
#[test]
fn a_publisher_goes_on_after_one_that_died_before_it_heard_of_success() {
    let Some(bucket) = Bucket::new("died") else { return };
    let db = bucket.open("store");
    fill(&db, 0..1000, "value");
    // The generation was created, and nothing after that happened. Before the creation, the publisher looks
    // for its number, and for its parent if it has one.
    for (generation, looks) in [(1, 1), (3, 2)] {
        db.put(format!("before {generation}"), "published").unwrap();
        let mut publisher = bucket.publisher(&db).unwrap();
        bucket.proxy.inject(Rule::new("PUT", "gen", Fault::Unanswered).times(1));
        bucket.proxy.inject(Rule::new("GET", "gen", Fault::Reset).after(looks));
        let outcome = publisher.publish();
        assert!(matches!(outcome, Err(Error::Bucket { .. })), "{outcome:?}");
        drop(publisher);
        bucket.proxy.heal();
        assert_eq!(bucket.published(), contents(&db), "it is there");
        let mut next = bucket.publisher(&db).unwrap();
        assert_eq!(next.publish().unwrap().generation, generation + 1);
    }
}

#[test]
fn other_writes_without_an_answer_are_repeated() {
    let Some(bucket) = Bucket::new("unanswered-writes") else { return };
    let db = bucket.open("store");
    let mut publisher = bucket.publisher(&db).unwrap();
    for kind in ["segment", "filter", "manifest", "latest"] {
        fill(&db, 0..1000, kind);
        bucket.proxy.inject(Rule::new("PUT", kind, Fault::Unanswered).times(1));
        publisher.publish().unwrap();
        let requests = bucket.proxy.take();
        let failed: Vec<_> = requests.iter().filter(|request| request.fault.is_some()).collect();
        assert_eq!(failed.len(), 1, "{kind}");
        let repeated = requests.iter().filter(|r| r.method == "PUT" && r.name == failed[0].name).count();
        assert_eq!(repeated, 2, "{kind}");
        assert_eq!(bucket.published(), contents(&db), "{kind}");
    }
}
