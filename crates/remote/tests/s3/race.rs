//! Two concurrent publishers of copies of one store.

use crate::bucket::{Bucket, contents, fill};
use sidebloom::Error as StoreError;
use sidebloom_remote::Error;
use std::path::Path;
use std::sync::Barrier;

const ROUNDS: u64 = 20;

#[test]
fn i5_one_of_two_publishers_goes_on_and_the_other_one_is_superseded() {
    let Some(bucket) = Bucket::new("race") else { return };
    let db = bucket.open("first");
    fill(&db, 0..100, "value");
    bucket.publisher(&db).unwrap().publish().unwrap();
    drop(db);
    let reader = bucket.read().unwrap();
    let (mut last, mut wins) = (bucket.path("first"), [0, 0]);
    for round in 1..=ROUNDS {
        // Each descends from the last generation, as far as its directory can tell.
        let names = ["left", "right"].map(|side| format!("{round} {side}"));
        names.iter().for_each(|name| copy(&last, &bucket.path(name)));
        let start = Barrier::new(2);
        let race = |name: &String| {
            let db = bucket.open(name);
            db.put(format!("round {round}"), name).unwrap();
            let mut publisher = bucket.publisher(&db).unwrap();
            start.wait();
            (publisher.publish(), db)
        };
        let outcomes = std::thread::scope(|scope| {
            let racers = names.each_ref().map(|name| scope.spawn(|| race(name)));
            racers.map(|racer| racer.join().unwrap())
        });
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.generation(), round + 1);
        for (side, (outcome, db)) in outcomes.iter().enumerate() {
            match outcome {
                Ok(done) => {
                    wins[side] += 1;
                    last = bucket.path(&names[side]);
                    assert_eq!(done.generation, round + 1);
                    assert_eq!(contents(reader.db()), contents(db), "round {round}");
                    db.put("still", "writable").unwrap();
                }
                Err(Error::Superseded { generation, .. }) => {
                    assert_eq!(*generation, round + 1);
                    assert!(matches!(db.put("a", "b"), Err(StoreError::Poisoned { .. })));
                }
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(wins[0] + wins[1], round, "round {round}");
    }
    println!("{ROUNDS} rounds: left {}, right {}", wins[0], wins[1]);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
