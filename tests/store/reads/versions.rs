//! Many versions of a key, and keys that share long prefixes: every read sees the newest version as of its
//! moment, in both directions.

use crate::support::{Contents, Rng, assert_holds, fast_dir, sized, tiny};
use sidebloom::{Db, MAX_KEY_BYTES, Options, Snapshot};

fn walk(snapshot: &Snapshot) -> Contents {
    snapshot.iter().map(|kv| kv.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

fn walk_back(snapshot: &Snapshot) -> Contents {
    snapshot.iter().rev().map(|kv| kv.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

/// Iterating over many versions in a memtable shows the newest of each, wherever its chunks end. A memtable's
/// cursor copies entries in chunks. A chunk must not end between two versions of one key.
#[test]
fn a_walk_over_many_versions_in_a_memtable_sees_the_newest_of_each() {
    for seed in 0..sized(4, 30) {
        let mut rng = Rng::new(seed);
        let dir = fast_dir();
        let db = Db::open(dir.path().join("db")).unwrap();
        let mut expected = Contents::new();
        let mut moments = Vec::new();
        let keys = 100 + rng.below(400);
        for write in 0..3000u64 {
            let key = rng.below(keys).to_be_bytes().to_vec();
            if rng.percent(15) {
                db.delete(&key).unwrap();
                expected.remove(&key);
            } else {
                db.put(&key, write.to_be_bytes()).unwrap();
                expected.insert(key, write.to_be_bytes().to_vec());
            }
            if rng.below(300) == 0 {
                moments.push((db.snapshot(), expected.clone()));
            }
        }
        moments.push((db.snapshot(), expected));
        for (snapshot, expected) in &moments {
            assert_eq!(&walk(snapshot), expected, "seed {seed}");
            assert_eq!(&walk_back(snapshot), expected, "seed {seed}, backwards");
            for start in (0..keys).step_by(17) {
                let start = start.to_be_bytes().to_vec();
                let below = snapshot.range(..start.clone()).rev().map(|kv| kv.unwrap().0);
                assert!(below.eq(expected.range(..start.clone()).rev().map(|(key, _)| key.clone())));
                let above = snapshot.range(start.clone()..).map(|kv| kv.unwrap().0);
                assert!(above.eq(expected.range(start..).map(|(key, _)| key.clone())));
            }
        }
    }
}

/// Lengths around those at which an encoded length takes another byte, up to the longest key.
#[test]
fn keys_that_share_prefixes_of_any_length_stay_apart_in_segments() {
    let lengths =
        [0, 1, 7, 8, 9, 15, 16, 126, 127, 128, 129, 254, 255, 256, 257, 300, 511, 512, 16_383, 16_384];
    let longest = MAX_KEY_BYTES - 2;
    for (options, name) in [(tiny(), "tiny"), (Options::new(), "default")] {
        let dir = fast_dir();
        let db = options.open(dir.path().join("db")).unwrap();
        let mut expected = Contents::new();
        for length in lengths.into_iter().chain([longest]) {
            for ending in [&b""[..], b"a", b"b", b"\xff", b"aa", b"a\0"] {
                let key = [&vec![b'p'; length], ending].concat();
                let value = [&(length as u32).to_be_bytes(), ending].concat();
                db.put(&key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        assert_holds(&db, &expected);
        db.flush().unwrap();
        assert_holds(&db, &expected);
        db.compact().unwrap();
        assert_holds(&db, &expected);
        for key in expected.keys() {
            let first = db.range(key.clone()..).next().unwrap().unwrap().0;
            assert_eq!(&first, key, "{name}");
            let last = db.range(..=key.clone()).next_back().unwrap().unwrap().0;
            assert_eq!(&last, key, "{name}");
            assert_eq!(
                db.prefix(key).count().unwrap() as usize,
                expected.keys().filter(|other| other.starts_with(key)).count()
            );
        }
        assert!(db.verify().unwrap().is_ok());
    }
}
