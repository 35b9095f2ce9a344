//! What lookups cost: nothing for a missing key, one request for a present one.

use super::{Bench, contents, fill};
use sidebloom::Options;
use sidebloom_remote::{Publisher, Reader, ReaderOptions, TakeOver};

/// Missing keys cost as many requests as the filters have false positives, and a hit costs one.
#[test]
fn missing_keys_cost_requests_for_false_positives_only() {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..50_000, "value");
    db.compact().unwrap();
    let published = Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    assert!(published.generation == 1 && published.files > 10, "{published:?}");
    bench.store.reset();
    let options = ReaderOptions::new().store(Options::new().block_cache_bytes(0));
    let reader = options.open(bench.remote(), bench.path("cache")).unwrap();
    let opening = bench.store.requests();
    let segments = reader.db().stats().levels.iter().map(|level| level.segments as u64).sum::<u64>();
    assert_eq!(opening.get("range segment"), Some(&segments), "an index each: {opening:?}");
    assert_eq!(opening.get("get filter"), Some(&segments));
    assert_eq!((opening.get("get latest"), opening.get("get manifest")), (Some(&1), Some(&1)));
    assert_eq!(opening.get("get gen"), Some(&2), "the newest, and that there is no next one");
    assert!(!opening.keys().any(|kind| kind.starts_with("list")), "{opening:?}");
    reader.db().warm().unwrap();
    bench.store.reset();
    let before = reader.db().stats();
    for i in 0..200_000 {
        assert!(!reader.db().contains_key(format!("key{:08}x", i % 50_000)).unwrap());
    }
    let false_positives = reader.db().stats().filter_false_positives - before.filter_false_positives;
    let requests: u64 = bench.store.requests().values().sum();
    assert_eq!(requests, false_positives, "{:?}", bench.store.requests());
    assert!((1..2000).contains(&false_positives), "{false_positives}");
    assert_eq!(reader.data_gets(), false_positives);
    for i in [0, 17, 49_999] {
        bench.store.reset();
        let value = reader.db().get(format!("key{i:08}")).unwrap();
        assert_eq!(value.as_deref(), Some(format!("value {i}").as_bytes()));
        assert_eq!(bench.store.requests().into_iter().collect::<Vec<_>>(), [("range segment".to_owned(), 1)]);
        assert!(bench.store.bytes_read() <= 8192, "a block: {}", bench.store.bytes_read());
    }
    assert_eq!(contents(reader.db()), contents(&db));
    assert!(reader.db().verify().unwrap().is_ok());
}

#[test]
fn blocks_in_the_cache_on_disk_are_not_fetched_again() {
    let bench = Bench::new();
    let db = bench.open("store");
    fill(&db, 0..5000, "value");
    Publisher::new(&db, bench.remote(), TakeOver::No).unwrap().publish().unwrap();
    let options = || ReaderOptions::new().store(Options::new().block_cache_bytes(0));
    let reader = options().disk_cache_bytes(10 << 20).open(bench.remote(), bench.path("cache")).unwrap();
    let read_all = |reader: &Reader| {
        for i in 0..5000 {
            assert!(reader.db().get(format!("key{i:08}")).unwrap().is_some());
        }
        reader.data_gets()
    };
    let gets = read_all(&reader);
    assert!(gets > 0 && gets < 2500, "{gets}");
    assert_eq!(read_all(&reader), gets);
    let tiny = options().disk_cache_bytes(10_000).open(bench.remote(), bench.path("cache")).unwrap();
    let first = read_all(&tiny);
    assert!(read_all(&tiny) > first, "too small for all");
}
