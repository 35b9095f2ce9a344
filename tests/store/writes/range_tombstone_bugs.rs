//! Past bugs of range tombstones.

use crate::support::{Contents, assert_holds, contents, fast_dir, fill_deep, promptly, tiny};
use sidebloom::{Db, MAX_KEY_BYTES};

/// A store with several levels, and its contents.
fn deep() -> (tempfile::TempDir, Db, Contents) {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let contents = fill_deep(&db, 7);
    let levels = db.stats().levels.iter().filter(|level| level.segments > 0).count();
    assert!(levels > 1, "{:?}", db.stats().levels);
    (dir, db, contents)
}

#[test]
fn i9_a_range_behind_the_last_entry_of_a_compaction_stays() {
    let (_dir, db, mut expected) = deep();
    let (first, middle) = {
        let mut keys = expected.keys();
        (keys.next().unwrap().clone(), keys.nth(expected.len() / 2).unwrap().clone())
    };
    // The only entry of the memtable lies before the range, so the last output ends with the range.
    db.put(&first, b"new").unwrap();
    db.delete_range(middle.clone()..).unwrap();
    expected.insert(first, b"new".to_vec());
    expected.split_off(&middle);
    for step in ["in the memtable", "flushed", "compacted at rest", "compacted"] {
        match step {
            "flushed" => db.flush().unwrap(),
            "compacted at rest" => db.wait_for_compaction().unwrap(),
            "compacted" => db.compact().unwrap(),
            _ => {}
        }
        assert!(contents(&db) == expected, "{step}");
        assert_holds(&db, &expected);
    }
}

#[test]
fn a_range_that_begins_at_a_key_larger_than_a_segment_is_compacted() {
    let (_dir, db, mut expected) = deep();
    // Each range begins with a key of the largest size, and covers many keys of that size.
    for letter in [b'b', b'k'] {
        let from = vec![letter; MAX_KEY_BYTES];
        db.put(&from, b"deleted").unwrap();
        db.delete_range(from.clone()..vec![letter + 3; 3]).unwrap();
        expected.retain(|key, _| *key < from || *key >= vec![letter + 3; 3]);
        db.put(vec![letter; 9], b"before").unwrap();
        expected.insert(vec![letter; 9], b"before".to_vec());
        db.flush().unwrap();
    }
    let db = promptly("a compaction", move || {
        db.wait_for_compaction().unwrap();
        db
    });
    assert!(contents(&db) == expected);
    db.compact().unwrap();
    assert!(contents(&db) == expected);
    assert!(db.verify().unwrap().is_ok());
}
