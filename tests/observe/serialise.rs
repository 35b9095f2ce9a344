//! Statistics as JSON, with the feature `serde`.

use crate::support::fast_dir;
use sidebloom::{Expiry, Options};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn statistics_serialise_with_units_in_the_names() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path().join("store")).unwrap();
    db.put_with("key", "value", Expiry::after(Duration::from_secs(3600))).unwrap();
    db.flush().unwrap();
    let follower = Options::new().follow(true).open(dir.path().join("store")).unwrap();
    follower.catch_up().unwrap();
    let json = |stats| serde_json::to_value(stats).unwrap();
    let stats = json(db.stats());
    for (name, count) in db.stats().counters() {
        assert_eq!(stats[name], count, "{name}");
    }
    assert_eq!(stats["levels"][0]["keys"], 1);
    assert_eq!(stats["write_stall"], serde_json::Value::Null);
    assert_eq!(stats["key_hash"], "xxh3-64");
    assert_eq!(stats["follower_age_seconds"], serde_json::Value::Null);
    let age = json(follower.stats())["follower_age_seconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&age), "{age}");
    let expiry = stats["levels"][0]["next_expiry_unix_seconds"].as_f64().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((now + 3000.0..now + 3700.0).contains(&expiry), "{expiry}");
    let keyspace = serde_json::to_value(&db.keyspace_stats()[""]).unwrap();
    assert_eq!(keyspace["next_expiry_unix_seconds"], stats["levels"][0]["next_expiry_unix_seconds"]);
}
