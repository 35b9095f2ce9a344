//! The sequence numbers of ingested rows: consecutive, assigned at publication.

use crate::support::{Contents, OpKind, STORE, SimFs, contents, tiny_on};
use sidebloom::{Compression, Db};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type Row = sidebloom::Result<(Vec<u8>, Vec<u8>)>;

fn rows(thread: u32, round: u32, count: u32) -> impl Iterator<Item = Row> {
    (0..count)
        .map(move |key| Ok((format!("key{key:03}/{thread}").into_bytes(), round.to_string().into_bytes())))
}

/// The number of the next operation, according to the newest log.
fn next_seq(fs: &SimFs) -> u64 {
    let mut next = 0;
    fs.visit(STORE, |path, bytes| {
        if path.extension().is_some_and(|kind| kind == "wal") {
            next = next.max(u64::from_le_bytes(bytes[28..36].try_into().unwrap()));
        }
    });
    next
}

#[test]
fn numbers_advance_by_one_for_each_of_many_concurrent_ingests() {
    const THREADS: u32 = 8;
    const ROUNDS: u32 = 12;
    let fs = SimFs::new();
    let db = tiny_on(&fs).background_threads(3).open(STORE).unwrap();
    db.put("x", "y").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    db.ingest(rows(thread, round, 20)).unwrap();
                    let mine = db.get(format!("key007/{thread}")).unwrap().unwrap();
                    assert_eq!(*mine, *round.to_string().as_bytes());
                }
            });
        }
    });
    db.flush().unwrap();
    assert_eq!(next_seq(&fs), 2 + u64::from(THREADS * ROUNDS));
    let expected: Contents = (0..THREADS)
        .flat_map(|thread| rows(thread, ROUNDS - 1, 20).map(Result::unwrap))
        .chain([(b"x".to_vec(), b"y".to_vec())])
        .collect();
    assert_eq!(contents(&db), expected);
    assert!(db.verify().unwrap().is_ok());
}

/// Ingests rows whose keys come one by one, while `beside` writes and ingests.
fn ingest_beside(db: &Db, beside: impl Fn(u32) + Send + 'static) {
    db.ingest(rows(9, 0, 400).zip(0..).map(move |(row, n)| {
        beside(n);
        row.map(|(key, value)| (key, [value, vec![n as u8; 30]].concat()))
    }))
    .unwrap();
}

#[test]
fn an_overtaken_ingest_does_not_write_its_segments_again() {
    let creations = |is_overtaken: bool| {
        let fs = SimFs::new();
        let created = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&created);
        fs.watch(move |moment| {
            let is_segment = moment.path.extension().is_some_and(|kind| kind == "obsolete");
            if is_segment && moment.kind == OpKind::Create {
                count.fetch_add(1, Relaxed);
            }
        });
        let db = tiny_on(&fs).compression(Compression::None).open(STORE).unwrap();
        db.put("a", "1").unwrap();
        let beside = db.clone();
        ingest_beside(&db, move |n| {
            if is_overtaken && n % 100 == 0 {
                beside.put("key000/9", "older").unwrap();
                beside.ingest([Ok((b"b".to_vec(), b"2".to_vec()))]).unwrap();
                beside.flush().unwrap();
            }
        });
        assert!(db.get("key000/9").unwrap().unwrap().starts_with(b"0"), "the rows are the newest");
        assert!(db.verify().unwrap().is_ok());
        created.load(Relaxed) - if is_overtaken { 4 } else { 0 }
    };
    assert!(creations(false) > 1);
    assert_eq!(creations(true), creations(false));
}

#[test]
fn segments_of_an_ingest_that_is_not_published_are_left_out_by_a_repair() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.put("a", "1").unwrap();
    let disk = fs.clone();
    let during = Arc::new(std::sync::Mutex::new(None));
    let taken = Arc::clone(&during);
    ingest_beside(&db, move |n| {
        if n == 399 {
            *taken.lock().unwrap() = Some(disk.crash(crate::support::Crash::Kill, 0));
        }
    });
    let then = during.lock().unwrap().take().unwrap();
    sidebloom::fs::Fs::remove(&then, &Path::new(STORE).join("MANIFEST")).unwrap();
    tiny_on(&then).repair(STORE).unwrap();
    let db = tiny_on(&then).open(STORE).unwrap();
    assert_eq!(contents(&db), Contents::from([(b"a".to_vec(), b"1".to_vec())]));
}
