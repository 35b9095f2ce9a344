//! Copies of stores to a SlateDB and back.

use crate::counted::Counted;
use crate::support::{open, parity, put, run};
use proptest::collection::vec;
use proptest::prelude::*;
use sidebloom::{Expiry, Options};
use sidebloom_slatedb::{Copied, Error, export, import};
use slatedb::DbReader;
use slatedb::config::Settings;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn store(dir: &Path, name: &str) -> sidebloom::Db {
    Options::new().memtable_bytes(1 << 20).open(dir.join(name)).unwrap()
}

fn rows(db: &sidebloom::Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    db.iter().map(|row| row.map(|(key, value)| (key, value.to_vec())).unwrap()).collect()
}

/// Copies a store to a SlateDB and from there to a new store. Returns both row counts.
fn there_and_back(from: &sidebloom::Db, to: &sidebloom::Db) -> [Copied; 2] {
    run(async {
        let remote = Arc::new(Counted::default());
        let db = open(&remote, vec![parity()]).await;
        let mut seen = Copied::default();
        let there = export(&from.snapshot(), &db, |so_far| seen = so_far).await.unwrap();
        assert_eq!(seen, there, "the last progress is all of it");
        db.close().await.unwrap();

        let db = open(&remote, vec![parity()]).await;
        let back = import(&db, to, |so_far| seen = so_far).await.unwrap();
        assert_eq!(seen, back);
        db.close().await.unwrap();
        [there, back]
    })
}

fn assert_equal_after_a_round_trip(from: &sidebloom::Db, dir: &Path) {
    let to = store(dir, "back");
    let [there, back] = there_and_back(from, &to);
    let expected = rows(from);
    let bytes = expected.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() as u64;
    assert_eq!([there, back], [Copied { rows: expected.len() as u64, bytes }; 2]);
    assert!(rows(&to) == expected, "other rows came back");
    to.verify().unwrap();
}

#[derive(Debug, Clone)]
enum Op {
    Put(u16, Vec<u8>),
    Delete(u16),
    DeleteRange(u16, u16),
    Flush,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..400_u16;
    prop_oneof![
        12 => (key.clone(), vec(any::<u8>(), 0..60)).prop_map(|(key, value)| Op::Put(key, value)),
        1 => (key.clone(), 1..3000_usize).prop_map(|(key, len)| Op::Put(key, vec![7; len * 50])),
        3 => key.clone().prop_map(Op::Delete),
        1 => (key.clone(), key).prop_map(|(from, to)| Op::DeleteRange(from.min(to), from.max(to))),
        1 => Just(Op::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_exported_comes_back(ops in vec(op(), 0..300)) {
        let dir = tempfile::tempdir().unwrap();
        let from = store(dir.path(), "from");
        for op in ops {
            match op {
                Op::Put(key, value) => from.put(key.to_be_bytes(), value).unwrap(),
                Op::Delete(key) => from.delete(key.to_be_bytes()).unwrap(),
                Op::DeleteRange(a, b) => from.delete_range(a.to_be_bytes()..b.to_be_bytes()).unwrap(),
                Op::Flush => from.flush().unwrap(),
            }
        }
        assert_equal_after_a_round_trip(&from, dir.path());
    }
}

#[test]
fn many_batches_and_the_longest_key_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let from = store(dir.path(), "from");
    let mut batch = sidebloom::Batch::new();
    for n in 0..40_000_u32 {
        batch.put(n.to_be_bytes(), vec![n as u8; n as usize % 200]);
    }
    from.write(batch).unwrap();
    for (byte, len) in [(1, 3 << 20), (2, 0), (3, 12 << 20), (4, 70_000)] {
        from.put([vec![byte; sidebloom::MAX_KEY_BYTES - 1], vec![9]].concat(), vec![byte; len]).unwrap();
    }
    assert_equal_after_a_round_trip(&from, dir.path());
}

#[test]
fn an_empty_store_comes_back_empty() {
    let dir = tempfile::tempdir().unwrap();
    assert_equal_after_a_round_trip(&store(dir.path(), "from"), dir.path());
}

/// An export has the rows of its snapshot, and leaves them in files with filters.
#[test]
fn an_export_has_the_rows_of_its_snapshot_in_files_with_filters() {
    let dir = tempfile::tempdir().unwrap();
    let from = store(dir.path(), "from");
    (0..2000_u32).for_each(|n| from.put(n.to_be_bytes(), "old").unwrap());
    let snapshot = from.snapshot();
    from.put("later", "new").unwrap();
    run(async {
        let remote = Arc::new(Counted::default());
        let db = open(&remote, vec![parity()]).await;
        let copied = export(&snapshot, &db, |_| ()).await.unwrap();
        assert_eq!((copied.rows, db.get("later").await.unwrap()), (2000, None));
        let manifest = db.manifest();
        let filters: u64 = manifest.l0().iter().map(|view| view.sst.info.filter_len).sum();
        assert!(filters > 2000, "{filters} bytes");
        db.close().await.unwrap();
        let reader = DbReader::builder("db", Arc::clone(&remote) as _).build().await.unwrap();
        let copied = import(&reader, &store(dir.path(), "by a reader"), |_| ()).await.unwrap();
        assert_eq!(copied.rows, 2000);
        reader.close().await.unwrap();
    });
}

#[test]
fn the_empty_key_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let from = store(dir.path(), "from");
    from.put("", "value").unwrap();
    from.put("key", "value").unwrap();
    run(async {
        let db = open(&Arc::default(), vec![parity()]).await;
        let error = export(&from.snapshot(), &db, |_| ()).await.unwrap_err();
        assert!(matches!(error, Error::EmptyKey), "{error}");
        assert!(db.scan::<std::ops::RangeFull>(..).await.unwrap().next().await.unwrap().is_none());
        from.delete("").unwrap();
        assert_eq!(export(&from.snapshot(), &db, |_| ()).await.unwrap().rows, 1);
        db.close().await.unwrap();
    });
}

#[test]
fn neither_side_may_have_rows_before() {
    let dir = tempfile::tempdir().unwrap();
    let from = store(dir.path(), "from");
    from.put("key", "value").unwrap();
    run(async {
        let db = open(&Arc::default(), vec![parity()]).await;
        put(&db, 0..1).await;
        let error = export(&from.snapshot(), &db, |_| ()).await.unwrap_err();
        assert_eq!(error.to_string(), "the SlateDB already has rows; copy to an empty one");
        let error = import(&db, &from, |_| ()).await.unwrap_err();
        assert_eq!(error.to_string(), "the store already has rows; copy to an empty one");
        assert_eq!(rows(&from).len(), 1);
        db.close().await.unwrap();
    });
}

#[test]
fn a_key_too_long_for_a_store_leaves_nothing_of_an_import() {
    let dir = tempfile::tempdir().unwrap();
    let to = store(dir.path(), "to");
    run(async {
        let db = open(&Arc::default(), vec![parity()]).await;
        put(&db, 0..20_000).await;
        db.put(vec![b'z'; sidebloom::MAX_KEY_BYTES + 1], b"value").await.unwrap();
        let error = import(&db, &to, |_| ()).await.unwrap_err();
        assert!(matches!(error, Error::Store(sidebloom::Error::KeyTooLarge { .. })), "{error}");
        db.close().await.unwrap();
    });
    assert_eq!(rows(&to), []);
}

/// A dropped import must not publish the rows that have arrived by then.
#[test]
fn a_dropped_import_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let to = store(dir.path(), "to");
    run(async {
        let db = open(&Arc::default(), vec![parity()]).await;
        put(&db, 0..100_000).await;
        let (started, seen) = tokio::sync::oneshot::channel();
        let mut started = Some(started);
        let copy = import(&db, &to, move |_| _ = started.take().map(|started| started.send(())));
        tokio::select! {
            biased;
            _ = seen => {}
            done = copy => panic!("it was not interrupted: {done:?}"),
        }
        db.close().await.unwrap();
    }); // The runtime waits for the blocking task.
    assert_eq!(rows(&to), []);
    to.put("key", "value").unwrap();
}

#[test]
fn exported_rows_never_expire_whatever_the_default_of_the_database_is() {
    let dir = tempfile::tempdir().unwrap();
    let from = store(dir.path(), "from");
    from.put("a", "1").unwrap();
    run(async {
        let settings =
            Settings { default_ttl_millis: Some(3_600_000), compactor_options: None, ..Settings::default() };
        let builder = slatedb::Db::builder("db", Arc::new(Counted::default())).with_settings(settings);
        let db = builder.build().await.unwrap();
        export(&from.snapshot(), &db, |_| ()).await.unwrap();
        db.put("b", "2").await.unwrap();
        let mut times = Vec::new();
        for key in ["a", "b"] {
            times.push(db.get_key_value(key).await.unwrap().unwrap().expire_ts);
        }
        assert!(
            times[0].is_none() && times[1].is_some(),
            "only the row that was not exported expires: {times:?}"
        );
        db.close().await.unwrap();
    });
}

#[test]
fn rows_expire_in_slatedb_when_they_would_have_and_do_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (from, back) = (store(dir.path(), "from"), store(dir.path(), "back"));
    let now = SystemTime::now();
    let at = [None, Some(now + Duration::from_secs(3600)), Some(now + Duration::from_millis(1500))];
    for (key, at) in ["forever", "hour", "moment"].into_iter().zip(at) {
        from.put_with(key, "value", at.map_or(Expiry::never(), Expiry::at)).unwrap();
    }
    run(async {
        let remote = Arc::new(Counted::default());
        let db = open(&remote, vec![parity()]).await;
        assert_eq!(export(&from.snapshot(), &db, |_| ()).await.unwrap().rows, 3);
        for (key, at) in ["forever", "hour", "moment"].into_iter().zip(at) {
            let millis = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
            assert_eq!(db.get_key_value(key).await.unwrap().unwrap().expire_ts, at.map(millis), "{key}");
        }
        tokio::time::sleep(Duration::from_millis(1600)).await;
        assert_eq!(import(&db, &back, |_| ()).await.unwrap().rows, 2);
        db.close().await.unwrap();
    });
    assert!(back.get("moment").unwrap().is_none() && back.get("hour").unwrap().is_some());
}
