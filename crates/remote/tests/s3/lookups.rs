//! What opening and lookups cost in S3 requests, as the network sees them.

use crate::bucket::{Bucket, contents, fill};
use crate::proxy::tally;
use sidebloom::{Compression, FilterPolicy, Options};

/// Rows of the store; each has a missing neighbour.
const ROWS: u32 = 200_000;
const MISSING: u32 = 1_000_000;

/// Opening costs one request for each part, and missing keys cost only the filters' false positives.
#[test]
fn an_opening_costs_a_request_per_part_and_missing_keys_almost_none() {
    let Some(bucket) = Bucket::new("lookups") else { return };
    // To avoid waiting for thousands of requests.
    let options = Options::new().filter_policy(FilterPolicy::bits_per_key(14.0));
    let options = options.compression(Compression::None).memtable_bytes(1 << 20).segment_bytes(512 << 10);
    let db = options.open(bucket.path("store")).unwrap();
    fill(&db, 0..ROWS, "value");
    db.compact().unwrap();
    let segments = db.stats().levels.iter().map(|level| level.segments).sum::<usize>();
    assert!(segments > 3, "{segments}");

    bucket.publisher(&db).unwrap().publish().unwrap();
    let published = bucket.proxy.take();
    let uploads = published.iter().filter(|request| request.method == "PUT").count();
    assert_eq!(uploads, 2 * segments + 3, "segments, filters, the manifest, the generation and the hint");

    let reader = bucket.read().unwrap();
    let opening = [
        ("GET latest", 1),
        ("GET gen", 1),
        ("GET gen 404", 1), // No next one.
        ("GET manifest", 1),
        ("GET filter", segments),
        ("GET segment ranged", segments), // The tails.
    ];
    let requests = bucket.proxy.take();
    let received: usize = requests.iter().map(|request| request.received).sum();
    println!("opening: {segments} segments, {} requests, {received} bytes", requests.len());
    assert_eq!(crate::proxy::count(&requests), tally(opening));

    let before = reader.db().stats();
    for i in 0..MISSING {
        assert!(!reader.db().contains_key(format!("key{:08}-{}", i % ROWS, i / ROWS)).unwrap());
    }
    let stats = reader.db().stats();
    let false_positives = stats.filter_false_positives - before.filter_false_positives;
    println!("{MISSING} missing keys: {false_positives} false positives");
    assert_eq!(bucket.proxy.take_tally(), tally([("GET segment ranged", false_positives as usize)]));
    assert!((1..2000).contains(&false_positives), "{false_positives}");
    assert_eq!(stats.filters_unavailable, 0);

    for i in [0, 17, ROWS - 1] {
        let value = reader.db().get(format!("key{i:08}")).unwrap().unwrap();
        assert_eq!(value, *format!("value {i}").as_bytes());
        assert_eq!(bucket.proxy.take_tally(), tally([("GET segment ranged", 1)]));
    }
    assert!(!reader.refresh().unwrap());
    assert_eq!(bucket.proxy.take_tally(), tally([("GET gen 404", 1)]));
}

#[test]
fn a_later_generation_costs_what_is_new_in_it() {
    let Some(bucket) = Bucket::new("later") else { return };
    let db = bucket.open("store");
    fill(&db, 0..20_000, "value");
    db.compact().unwrap();
    let mut publisher = bucket.publisher(&db).unwrap();
    publisher.publish().unwrap();
    let reader = bucket.read().unwrap();
    bucket.proxy.take();

    db.put("key00000000-new", "new").unwrap();
    assert_eq!(publisher.publish().unwrap().generation, 2);
    let requests = bucket.proxy.take();
    let puts = requests.iter().filter(|request| request.method == "PUT");
    let mut puts: Vec<_> = puts.map(|request| request.label()).collect();
    puts[..2].sort(); // These two are sent at once.
    assert_eq!(puts, ["PUT filter", "PUT segment", "PUT manifest", "PUT gen", "PUT latest"]);
    assert!(requests.iter().all(|request| request.kind != "list"), "{requests:?}");

    assert!(reader.refresh().unwrap());
    let requests = bucket.proxy.take_tally();
    assert_eq!([requests["GET segment ranged"], requests["GET filter"], requests["GET manifest"]], [1, 1, 1]);
    assert!(!requests.contains_key("GET latest") && !requests.contains_key("GET list"), "{requests:?}");
    assert_eq!(reader.db().get("key00000000-new").unwrap().unwrap(), *b"new");
    assert_eq!(contents(reader.db()), contents(&db));

    // Nothing is new.
    bucket.proxy.take();
    assert_eq!(publisher.publish().unwrap().generation, 3);
    let expected = [
        ("GET gen", 1),     // The previous one still exists,
        ("GET gen 404", 1), // and there is no next one.
        ("PUT gen", 1),
        ("HEAD gen", 1),
        ("PUT latest", 1),
    ];
    assert_eq!(bucket.proxy.take_tally(), tally(expected));
}
