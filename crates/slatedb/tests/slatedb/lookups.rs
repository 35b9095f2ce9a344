//! Lookups in databases: what the filters save, as the object store counts it, and filters of several
//! policies in one database.

use crate::counted::Counted;
use crate::support::{Policies, bloom, flush, key, open, parity, put, run};
use sidebloom_slatedb::BloomReader;
use slatedb::config::{CompactorOptions, Settings};
use slatedb::{BloomFilterPolicy, Db, SstReader};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The end of each SST file's data blocks, and the length of its filters.
fn layout(db: &Db) -> HashMap<String, (u64, u64)> {
    let manifest = db.manifest();
    let compacted = manifest.compacted().iter().flat_map(|run| run.sst_views());
    let infos = manifest.l0().iter().chain(compacted).map(|view| (&view.sst.id, &view.sst.info));
    infos
        .map(|(id, info)| {
            let data_end = [info.filter_offset, info.index_offset].into_iter().filter(|&at| at > 0).min();
            (format!("{}.sst", id.value()), (data_end.unwrap(), info.filter_len))
        })
        .collect()
}

fn filter_bytes(db: &Db) -> u64 {
    layout(db).values().map(|(_, bytes)| bytes).sum()
}

/// Data blocks read by lookups of odd keys, which are all missing. Also checks that the even ones are found.
async fn wasted_reads(db: &Db, store: &Counted, range: std::ops::Range<u32>) -> usize {
    wasted_reads_of(db, store, range, &[""]).await
}

/// The same, with each of these suffixes.
async fn wasted_reads_of(db: &Db, store: &Counted, range: std::ops::Range<u32>, suffixes: &[&str]) -> usize {
    let layout = layout(db);
    for n in range.clone().filter(|n| n % 100 == 0) {
        assert_eq!(db.get(key(n)).await.unwrap().unwrap(), format!("value {n}"));
    }
    store.take_reads();
    for n in range.filter(|n| n % 2 == 1) {
        for suffix in suffixes {
            let missing = [&key(n)[..], suffix.as_bytes()].concat();
            assert_eq!(db.get(missing).await.unwrap(), None);
        }
    }
    let is_data = |(name, range): &(String, std::ops::Range<u64>)| {
        layout.get(name).is_some_and(|&(data_end, _)| range.end <= data_end)
    };
    store.take_reads().iter().filter(|read| is_data(read)).count()
}

/// Filter bytes and wasted reads of a database with these policies.
fn measured(policies: Policies, suffixes: &[&str]) -> (u64, usize) {
    const KEYS: u32 = 20_000;
    run(async {
        let store = Arc::new(Counted::default());
        let db = open(&store, policies).await;
        put(&db, 0..KEYS).await;
        let figures = (filter_bytes(&db), wasted_reads_of(&db, &store, 0..KEYS, suffixes).await);
        db.close().await.unwrap();
        figures
    })
}

#[test]
fn fewer_filter_bytes_than_bloom_s_cause_less_than_half_the_wasted_reads() {
    let suffixes = ["", " a", " b", " c", " d", " e", " f", " g", " h", " i"];
    let (bloom_bytes, bloom_reads) = measured(vec![bloom()], &suffixes);
    let (parity_bytes, parity_reads) = measured(vec![parity()], &suffixes);
    println!(
        "Bloom: {bloom_bytes} bytes, {bloom_reads} reads; parity: {parity_bytes} bytes, {parity_reads} reads"
    );
    assert!(bloom_reads > 600, "{bloom_reads} of 100,000: the measure measures");
    assert!(parity_reads > 150, "{parity_reads}");
    assert!(parity_reads as f64 <= 0.45 * bloom_reads as f64, "{parity_reads} of {bloom_reads}");
    assert!(parity_bytes < bloom_bytes, "{parity_bytes}, {bloom_bytes}");
}

#[test]
fn without_filters_every_lookup_reads_a_block() {
    let (bytes, reads) = measured(Vec::new(), &[""]);
    assert_eq!((bytes, reads), (0, 9_999), "the last odd key is beyond the file's");
}

const PART: u32 = 10_000;

/// A database with a file written with Bloom filters and one written with these policies, opened with these.
async fn mixed(store: &Arc<Counted>, policies: Policies) -> Db {
    let db = open(store, vec![bloom()]).await;
    put(&db, 0..PART).await;
    db.close().await.unwrap();
    let db = open(store, policies).await;
    put(&db, PART..2 * PART).await;
    db
}

#[test]
fn files_of_both_policies_are_read_with_both_filters() {
    run(async {
        let store = Arc::new(Counted::default());
        let reader = Arc::new(BloomReader::new(BloomFilterPolicy::new(10)));
        let db = mixed(&store, vec![parity(), reader]).await;
        let old = wasted_reads(&db, &store, 0..PART).await;
        let new = wasted_reads(&db, &store, PART..2 * PART).await;
        assert!(old < 100 && new < 40, "{old}, {new} of 5000");
        let layout = layout(&db);
        let sizes: Vec<u64> = layout.values().map(|(_, bytes)| *bytes).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|&bytes| bytes < 6_400), "{sizes:?}: no file has two filters of all keys");
        db.close().await.unwrap();

        // And back: the earlier policies read everything, and use the filters that they know.
        let db = open(&store, vec![bloom()]).await;
        let old = wasted_reads(&db, &store, 0..PART).await;
        let new = wasted_reads(&db, &store, PART..2 * PART).await;
        assert!(old < 100 && new == 4_999, "{old}, {new} of 5000");
        db.close().await.unwrap();
    });
}

#[test]
fn files_of_another_policy_alone_are_read_without_their_filters() {
    run(async {
        let store = Arc::new(Counted::default());
        let db = mixed(&store, vec![parity()]).await;
        assert_eq!(wasted_reads(&db, &store, 0..PART).await, 4_999);
        assert!(wasted_reads(&db, &store, PART..2 * PART).await < 40);
        db.close().await.unwrap();
    });
}

/// I9 for filters of other policies: a key whose newest version is a deletion must not show an older one.
#[test]
fn deletions_and_overwritten_values_are_seen_through_the_filters() {
    run(async {
        let store = Arc::new(Counted::default());
        let db = open(&store, vec![parity()]).await;
        put(&db, 0..PART).await;
        for n in (0..PART).step_by(4) {
            db.delete(key(n)).await.unwrap();
        }
        flush(&db).await;
        for n in (0..PART).step_by(40) {
            db.put(key(n), b"again").await.unwrap();
        }
        flush(&db).await;
        assert_eq!(db.manifest().l0().len(), 3);
        for n in 0..PART {
            let expected = match n {
                n if n % 40 == 0 => Some("again".to_owned()),
                n if n % 4 == 0 || n % 2 == 1 => None,
                n => Some(format!("value {n}")),
            };
            assert_eq!(db.get(key(n)).await.unwrap().map(Vec::from), expected.map(String::into_bytes), "{n}");
        }
        db.close().await.unwrap();
    });
}

#[test]
fn compactions_write_parity_filters_in_the_place_of_others() {
    run(async {
        let store = Arc::new(Counted::default());
        let reader = Arc::new(BloomReader::new(BloomFilterPolicy::new(10)));
        let db = mixed(&store, vec![parity(), reader]).await;
        put(&db, 2 * PART..3 * PART).await;
        put(&db, 3 * PART..4 * PART).await;
        db.close().await.unwrap();
        let settings = Settings { min_filter_keys: 1, ..compacting() };
        let builder = Db::builder("db", Arc::clone(&store) as _).with_settings(settings);
        let db = builder.with_filter_policies(vec![parity()]).with_db_cache_disabled().build().await.unwrap();
        while db.manifest().compacted().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let files: Vec<u64> = db
            .manifest()
            .compacted()
            .iter()
            .flat_map(|run| run.sst_views())
            .map(|view| view.sst.info.filter_len)
            .collect();
        let bits = files.iter().sum::<u64>() as f64 * 8.0 / f64::from(2 * PART);
        assert!(db.manifest().l0().is_empty() && (8.5..9.4).contains(&bits), "{files:?} bytes");
        assert!(wasted_reads(&db, &store, 0..PART).await < 40, "of what Bloom filters guarded before");
        db.close().await.unwrap();
    });
}

fn compacting() -> Settings {
    let often = CompactorOptions { poll_interval: Duration::from_millis(20), ..CompactorOptions::default() };
    Settings {
        compactor_options: Some(often),
        manifest_poll_interval: Duration::from_millis(20),
        garbage_collector_options: None,
        ..Settings::default()
    }
}

#[test]
fn the_filter_of_a_file_has_all_its_rows() {
    run(async {
        let store = Arc::new(Counted::default());
        let db = open(&store, vec![parity()]).await;
        put(&db, 0..PART).await;
        let reader = SstReader::new("db", Arc::clone(&store) as _, None, None);
        let file = reader.open_with_handle(db.manifest().l0()[0].sst.clone()).unwrap();
        let rows = file.stats().await.unwrap().unwrap().num_rows();
        let bits = file.info().filter_len as f64 * 8.0 / rows as f64;
        assert!(rows == 5_000 && (8.5..9.4).contains(&bits), "{rows} rows, {bits} bits per row");
        db.close().await.unwrap();
    });
}
