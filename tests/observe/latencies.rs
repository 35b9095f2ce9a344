//! Latency histograms, which are there if they are asked for.

use crate::prometheus::{metrics_of, value};
use crate::support::fast_dir;
use sidebloom::{Durability, Options};
use std::time::Duration;

#[test]
fn latencies_are_recorded_only_if_they_are_asked_for() {
    let dir = fast_dir();
    let open = |on| {
        Options::new().latency_histograms(on).durability(Durability::Sync).open(dir.path().join("store"))
    };
    let db = open(false).unwrap();
    db.put("key", "value").unwrap();
    assert!(db.stats().latencies.is_none());
    assert!(!metrics_of(&db).contains_key("sidebloom_latency_seconds"));
    db.close().unwrap();

    let db = open(true).unwrap();
    let before = db.stats().latencies.unwrap();
    (0..100).for_each(|n| db.put(format!("key{n:02}"), "value").unwrap());
    db.flush().unwrap();
    let (hits, misses) = (50_000, 100_000);
    (0..hits).for_each(|n| assert!(db.get(format!("key{:02}", n % 100)).unwrap().is_some()));
    (0..misses).for_each(|n| assert!(db.get(format!("key{:02}x", n % 100)).unwrap().is_none()));
    let now = db.stats().latencies.unwrap();
    assert_eq!(now.put.count() - before.put.count(), 100);
    assert!(now.commit.count() - before.commit.count() >= 100, "{}", now.commit.count());
    let is_sample = |of: u64, all: u64| (all / 80..all / 50).contains(&of);
    assert!(is_sample(now.get_hit.count(), hits), "{}", now.get_hit.count());
    assert!(is_sample(now.get_miss.count(), misses), "{}", now.get_miss.count());
    for (name, histogram) in now.by_name().filter(|(name, _)| *name != "stall") {
        let [median, most] = [0.5, 1.0].map(|share| histogram.quantile(share).unwrap());
        assert!(Duration::ZERO < median && median <= most && most < Duration::from_secs(60), "{name}");
        assert!(histogram.sum() <= most * histogram.count() as u32, "{name}");
    }
    let metrics = metrics_of(&db);
    let count = |operation| {
        let samples = &metrics["sidebloom_latency_seconds"].samples;
        let of =
            samples.iter().find(|s| s.name.ends_with("_count") && s.label("operation") == Some(operation));
        of.unwrap().value as u64
    };
    assert_eq!((count("put"), count("get_hit")), (now.put.count(), now.get_hit.count()));
    assert!(value(&metrics, "sidebloom_latency_seconds", Some(("le", "+Inf"))) > 0.0);
}

/// As a scraper needs them: bounds rise, counts never fall, and the last bucket has all.
#[test]
fn histograms_of_prometheus_are_cumulative() {
    let dir = fast_dir();
    let db = Options::new().latency_histograms(true).open(dir.path().join("store")).unwrap();
    (0..1000).for_each(|n| db.put(format!("key{n:04}"), "value").unwrap());
    let metrics = metrics_of(&db);
    for operation in ["get_hit", "get_miss", "put", "commit", "stall"] {
        let of = metrics["sidebloom_latency_seconds"].samples.iter();
        let of: Vec<_> = of.filter(|s| s.label("operation") == Some(operation)).collect();
        let buckets: Vec<(f64, f64)> = of
            .iter()
            .filter(|s| s.name.ends_with("_bucket"))
            .map(|s| match s.label("le").unwrap() {
                "+Inf" => (f64::INFINITY, s.value),
                bound => (bound.parse().unwrap(), s.value),
            })
            .collect();
        assert!(
            buckets.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1),
            "{buckets:?}"
        );
        let count = of.iter().find(|s| s.name.ends_with("_count")).unwrap().value;
        assert_eq!(buckets.last().unwrap(), &(f64::INFINITY, count));
    }
}
