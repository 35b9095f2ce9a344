//! I10 where no public call can break it: a manifest whose level 1 overlaps.

use super::{Db, repair};
use crate::error::Error;
use crate::fs::RealFs;
use crate::manifest::{Manifest, read_state};
use crate::support::fast_dir;
use std::sync::Arc;

#[test]
fn i10_a_store_whose_sorted_level_overlaps_is_refused_by_name_and_repair_brings_every_key_back() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = Db::open(&path).unwrap();
    for (round, keys) in [["a", "m", "z"], ["b", "m", "n"]].iter().enumerate() {
        keys.iter().for_each(|key| db.put(key, [round as u8]).unwrap());
        db.flush().unwrap();
    }
    drop(db);
    let mut state = read_state(&RealFs, &path).unwrap();
    assert_eq!(state.segments.len(), 2);
    state.segments.values_mut().for_each(|meta| meta.level = 1);
    Manifest::create(Arc::new(RealFs), &path, &state).unwrap();

    for read_only in [false, true] {
        match crate::Options::new().read_only(read_only).open(&path) {
            Err(Error::Corruption { file, what, .. }) => {
                assert!(file.ends_with("MANIFEST") && what.contains("overlap"), "{what}");
            }
            other => panic!("not refused: {:?}", other.map(|_| ())),
        }
    }
    assert!(repair(&path).unwrap().rebuilt);
    let db = Db::open(&path).unwrap();
    for (key, round) in [("a", 0), ("b", 1), ("m", 1), ("n", 1), ("z", 0)] {
        assert_eq!(db.get(key).unwrap().as_deref(), Some([round].as_slice()), "{key}");
    }
}
