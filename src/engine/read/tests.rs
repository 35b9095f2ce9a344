//! Filters that a thread keeps, when the view changes.

use super::*;
use crate::Options;
use crate::support::fast_dir;
use std::cell::Cell;

#[test]
fn i1_a_filter_whose_memtable_goes_while_it_is_asked_is_not_believed() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    (0..1000).for_each(|i| db.put(format!("key {i}"), "").unwrap());
    let (reader, asked) = (db.reader(), Cell::new(0));
    let key = reader.hash_key(b"key 7");
    assert!(db.get("key 7").unwrap().is_some(), "this thread keeps the filter");
    let route = reader.ask_filters(|filters, counters| {
        if asked.replace(asked.get() + 1) == 0 {
            db.flush().unwrap();
        }
        filters.route(key, counters)
    });
    assert_eq!((asked.get(), matches!(route, (Route::Runs(_), _))), (2, true), "{route:?}");
}

#[test]
fn i1_kept_filters_of_a_view_that_changes_meanwhile_are_not_believed() {
    for runs in [0, 1] {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        if runs == 1 {
            (0..1000).step_by(2).for_each(|i| db.put(format!("key {i}"), "").unwrap());
            db.flush().unwrap();
        }
        db.put("key 7", "").unwrap();
        db.warm().unwrap();
        assert!(db.get("key 7").unwrap().is_some(), "this thread keeps the filter");
        let (reader, missing) = (db.reader(), b"key 9".as_slice());
        assert!(reader.kept_route(missing, reader.hash(missing)).is_nowhere());
        let key = b"key 7".as_slice();
        let hash = reader.hash(key);
        let flush = || db.flush().unwrap();
        assert_eq!(reader.kept_route_after(key, hash, flush), Routed::UNKNOWN, "{runs} runs");
        assert!(db.get("key 7").unwrap().is_some());
    }
}

#[test]
fn filters_that_idle_threads_keep_are_empty_once_their_memtable_is_gone() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path()).unwrap();
    db.put("a", "").unwrap();
    assert!(db.get("b").unwrap().is_none()); // Now this thread keeps the filters.
    let filters = Arc::clone(&db.engine().shared.view().filters);
    let hash = db.reader().hash_key(b"a").hash;
    assert!(!filters.memtables_deny(hash));
    drop(db);
    assert!(filters.memtables_deny(hash));
}
