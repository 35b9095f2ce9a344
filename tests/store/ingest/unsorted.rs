//! `Db::ingest_unsorted`: rows in any order, sorted in bounded memory.

use crate::support::{Contents, Crash, Fault, OpKind, Rng, STORE, SimFs, contents, tiny_on};
use sidebloom::{Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Memory for a few dozen rows.
const MEMORY: u64 = 4096;

type Row = (Vec<u8>, Vec<u8>);

/// Rows in a random order, many keys more than once; some rows are empty.
fn rows(count: u32, seed: u64) -> Vec<Row> {
    let mut rng = Rng::new(seed);
    let key = |rng: &mut Rng| match rng.below(50) {
        0 => Vec::new(),
        1 => vec![b'k'; rng.below(200) as usize],
        _ => format!("key{:06}", rng.below(u64::from(count))).into_bytes(),
    };
    (0..count).map(|n| (key(&mut rng), if n % 7 == 0 { vec![] } else { n.to_be_bytes().repeat(8) })).collect()
}

fn pairs(rows: &[Row]) -> impl Iterator<Item = Result<(&[u8], &[u8])>> {
    rows.iter().map(|(key, value)| Ok((key.as_slice(), value.as_slice())))
}

fn left(fs: &SimFs, ending: &str) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

#[test]
fn i12_of_each_key_the_last_row_counts_however_many_runs_the_rows_need() {
    // In memory; a few runs; enough runs to be merged into a second tier.
    for (count, most, least) in [(1, 0, 0), (40, 0, 0), (800, 63, 3), (9000, u64::MAX, 130)] {
        let fs = SimFs::new();
        let db = tiny_on(&fs).memtable_bytes(MEMORY).open(STORE).unwrap();
        db.put("before", "1").unwrap();
        let rows = rows(count, 7);
        let written = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&written);
        fs.watch(move |moment| {
            let is_temporary = moment.path.extension().is_some_and(|ending| ending == "obsolete");
            match moment.kind {
                OpKind::Create if is_temporary => _ = counting.fetch_add(1, Relaxed),
                OpKind::Rename if is_temporary => _ = counting.fetch_sub(1, Relaxed), // Published.
                _ => {}
            }
        });
        db.ingest_unsorted(pairs(&rows)).unwrap();
        let files = written.load(Relaxed);
        assert!((least..=most).contains(&files), "{count} rows: {files} temporary files");
        let mut expected: Contents = rows.into_iter().collect();
        expected.insert(b"before".to_vec(), b"1".to_vec());
        assert!(contents(&db) == expected, "{count} rows");
        assert!(db.verify().unwrap().is_ok());
        assert_eq!(left(&fs, ".obsolete"), [""; 0].map(PathBuf::from));
    }
}

#[test]
fn rows_that_cannot_be_taken_leave_the_store_as_it_was() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).memtable_bytes(MEMORY).open(STORE).unwrap();
    db.put("before", "1").unwrap();
    let files = fs.files();
    let rows = rows(1000, 3);
    let broken = || Err(Error::InvalidArgument("the reader broke".into()));
    let long = vec![b'x'; MAX_VALUE_BYTES + 1];
    let long_key = &long[..MAX_KEY_BYTES + 1];
    let error = db.ingest_unsorted(pairs(&rows).chain([broken()])).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    let error = db.ingest_unsorted(pairs(&rows).chain([Ok((long_key, &b""[..]))])).unwrap_err();
    assert!(matches!(error, Error::KeyTooLarge { .. }), "{error}");
    let error = db.ingest_unsorted(pairs(&rows).chain([Ok((&b"k"[..], &long[..]))])).unwrap_err();
    assert!(matches!(error, Error::ValueTooLarge { .. }), "{error}");
    let panics =
        std::panic::AssertUnwindSafe(|| db.ingest_unsorted(pairs(&rows).chain([()].map(|()| panic!()))));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(contents(&db).len(), 1);
    assert_eq!(fs.files(), files, "no file is left");
    db.ingest_unsorted(pairs(&rows)).unwrap();
    assert!(contents(&db).len() > 100);
}

/// The next opening removes leftover runs, and no repair takes them for segments of the store.
#[test]
fn i4_a_crash_at_any_write_leaves_all_rows_or_none_and_no_temporary_file() {
    let rows = rows(700, 5);
    let expected: Contents = rows.iter().cloned().collect();
    let ingest = |fs: &SimFs| -> Result<()> {
        tiny_on(fs).memtable_bytes(MEMORY).open(STORE)?.ingest_unsorted(pairs(&rows))
    };
    let undisturbed = SimFs::new();
    ingest(&undisturbed).unwrap();
    let (mut none, mut all, mut temporary, mut repairs) = (0, 0, 0, 0);
    for stop in 0..=undisturbed.writes() {
        let fs = SimFs::new();
        fs.fail(Fault::stop(stop));
        let acknowledged = ingest(&fs).is_ok();
        for (seed, crash) in (0..).zip([Crash::Kill, Crash::Power]) {
            let fs = fs.crash(crash, stop * 2 + seed);
            temporary += left(&fs, ".obsolete").len();
            let is_half = left(&fs, ".obsolete").len() > 2;
            if is_half && stop % 5 == 0 && fs.read(Path::new(STORE).join("MANIFEST")).is_some() {
                let repaired = fs.crash(Crash::Kill, 0);
                repaired.write(Path::new(STORE).join("MANIFEST"), [0; 100]);
                tiny_on(&repaired).repair(STORE).unwrap();
                // Without any segment, there may be no store left.
                let found = tiny_on(&repaired).open(STORE).map(|db| contents(&db)).unwrap_or_default();
                repairs += usize::from(!found.is_empty());
                assert!(found.iter().all(|(key, value)| expected.get(key) == Some(value)), "a row of a run");
            }
            let db = tiny_on(&fs).open(STORE).unwrap();
            match contents(&db) {
                found if found == expected => all += 1,
                found => {
                    assert_eq!(
                        (found.len(), acknowledged),
                        (0, false),
                        "stopped after {stop} writes, {crash:?}"
                    );
                    none += 1;
                }
            }
            db.put("a write removes them", "").unwrap();
            assert_eq!(left(&fs, ".obsolete"), [""; 0].map(PathBuf::from));
        }
    }
    assert!(none > 10 && all > 3 && temporary > 10 && repairs > 3, "{none} {all} {temporary} {repairs}");
}

#[test]
fn i6_a_temporary_file_that_does_not_read_back_is_an_error_that_names_it() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).memtable_bytes(MEMORY).open(STORE).unwrap();
    let rows = rows(1000, 9);
    let damaging = fs.clone();
    let damaged = pairs(&rows).enumerate().map(move |(n, row)| {
        if n == 999 {
            let path = left(&damaging, ".obsolete").swap_remove(0);
            let mut bytes = damaging.read(&path).unwrap();
            bytes[100] ^= 1;
            damaging.write(&path, bytes);
        }
        row
    });
    let error = db.ingest_unsorted(damaged).unwrap_err();
    let Error::Corruption { file, .. } = &error else { panic!("{error}") };
    assert!(file.to_str().unwrap().contains("0000"), "{error}");
    assert_eq!(contents(&db).len(), 0);
    assert_eq!(left(&fs, ".obsolete"), [""; 0].map(PathBuf::from));
    db.ingest_unsorted(pairs(&rows)).unwrap();
    assert!(db.verify().unwrap().is_ok());
}
