//! The text for Prometheus, of live stores.

use crate::exposition::{Family, read};
use crate::support::fast_dir;
use sidebloom::{Db, Exposition, Keyspace, KeyspaceOptions, Options};
use std::collections::BTreeMap;

pub fn metrics_of(db: &Db) -> BTreeMap<String, Family> {
    let mut metrics = Exposition::new();
    metrics.add_store("main", db).unwrap();
    read(&metrics.to_string()).unwrap()
}

/// The value of a metric of the only store.
pub fn value(metrics: &BTreeMap<String, Family>, name: &str, label: Option<(&str, &str)>) -> f64 {
    let samples = &metrics.get(name).unwrap_or_else(|| panic!("no {name}")).samples;
    let found = samples.iter().find(|s| label.is_none_or(|(label, value)| s.label(label) == Some(value)));
    found.unwrap_or_else(|| panic!("no {name} with {label:?}")).value
}

#[test]
fn metrics_are_those_of_the_statistics_in_base_units() {
    let dir = fast_dir();
    let db = Options::new().open(dir.path().join("store")).unwrap();
    for run in 0..2 {
        (0..500).for_each(|n| db.put(format!("key{n:04}"), format!("value {run}")).unwrap());
        db.flush().unwrap();
    }
    (0..500).for_each(|n| assert!(db.get(format!("key{n:04}absent")).unwrap().is_none()));
    db.compact().unwrap();
    let (stats, metrics) = (db.stats(), metrics_of(&db));
    let is = |name: &str, expected: u64| assert_eq!(value(&metrics, name, None), expected as f64, "{name}");
    is("sidebloom_flushes_total", 2);
    is("sidebloom_compactions_total", stats.compactions);
    assert!(stats.compactions > 0);
    is("sidebloom_compactions_running", 0);
    is("sidebloom_user_bytes_total", stats.user_bytes);
    is("sidebloom_filter_negatives_total", stats.filter_negatives);
    is("sidebloom_block_cache_bytes", stats.block_cache_bytes);
    is("sidebloom_failed", 0);
    let level = stats.levels.last().unwrap();
    let number = level.level.to_string();
    assert_eq!(value(&metrics, "sidebloom_level_keys", Some(("level", &number))), level.keys as f64);
    let seconds = value(&metrics, "sidebloom_stall_seconds_total", None);
    assert_eq!(seconds, stats.stall_micros as f64 / 1e6);
    assert!(metrics.values().flat_map(|family| &family.samples).all(|s| s.label("store") == Some("main")));
    let mut alone = String::new();
    stats.write_prometheus(&mut alone).unwrap();
    assert!(read(&alone).unwrap().values().flat_map(|f| &f.samples).all(|s| s.label("store").is_none()));
    db.stop_writing("a test");
    assert_eq!(value(&metrics_of(&db), "sidebloom_failed", None), 1.0);
}

#[test]
fn several_stores_share_one_text_under_names_that_differ() {
    let dir = fast_dir();
    let open = |name: &str| Db::open(dir.path().join(name)).unwrap();
    let (one, other) = (open("one"), open("other"));
    other.put("k", "v").unwrap();
    other.flush().unwrap();
    let mut metrics = Exposition::new();
    metrics.add_store("one", &one).unwrap();
    metrics.add_store("o\"t\\h\ner", &other).unwrap();
    let refused = metrics.add_store("one", &other).unwrap_err();
    assert!(matches!(refused, sidebloom::Error::InvalidArgument(_)), "{refused}");
    let families = read(&metrics.to_string()).unwrap();
    let stores: Vec<_> =
        families["sidebloom_flushes_total"].samples.iter().map(|s| s.label("store")).collect();
    assert_eq!(stores, [Some("one"), Some("o\"t\\h\ner")]);
}

#[test]
fn keyspaces_with_hostile_names_are_one_series_each() {
    let dir = fast_dir();
    let db = Db::open(dir.path().join("store")).unwrap();
    let longest = "é".repeat(127) + "x";
    let names = [
        "quote\"",
        "new\nline",
        "back\\slash",
        "\\n",
        "\"} 1\nfake_total 1",
        "nul\0",
        "\u{1}\r\t",
        "1-2 3",
        "default",
        "{a=\"b\"}",
        "# TYPE x counter",
        "\u{2028}",
        "\u{202e}rtl",
        &longest,
    ];
    for name in names {
        let keyspace = db.create_keyspace(name, KeyspaceOptions::new()).unwrap();
        keyspace.put("key", name).unwrap();
    }
    db.put("key", "").unwrap();
    db.flush().unwrap();
    let metrics = metrics_of(&db);
    let samples = &metrics["sidebloom_keyspace_shared_segments"].samples;
    let mut found: Vec<&str> = samples.iter().map(|s| s.label("keyspace").unwrap_or_default()).collect();
    let mut expected: Vec<&str> = names.into_iter().chain([""]).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(samples.iter().all(|sample| sample.value == 1.0), "{samples:?}");
    assert!(metrics.keys().all(|name| name.starts_with("sidebloom_")));
}

/// One pass over all segments counts what a look at one keyspace counts.
#[test]
fn statistics_of_all_keyspaces_are_those_of_each() {
    let dir = fast_dir();
    let options = Options::new().memtable_bytes(64 << 10).segment_bytes(32 << 10);
    let db = options.open(dir.path().join("store")).unwrap();
    let keyspaces: Vec<_> = (0..20)
        .map(|n| db.create_keyspace(&format!("keyspace {n}"), KeyspaceOptions::new()).unwrap())
        .collect();
    for (n, keyspace) in keyspaces.iter().enumerate() {
        (0..n * n * 10).for_each(|row| keyspace.put(format!("key{row:06}"), "value").unwrap());
        keyspace.delete("key000001").unwrap();
    }
    (0..500).for_each(|row| db.put(format!("key{row:06}"), "value").unwrap());
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    db.warm().unwrap();
    let all = db.keyspace_stats();
    assert_eq!(all.len(), 21);
    assert_eq!(all[""], Keyspace::stats(&db).unwrap());
    for (n, keyspace) in keyspaces.iter().enumerate() {
        assert_eq!(all[&format!("keyspace {n}")], keyspace.stats().unwrap(), "keyspace {n}");
    }
    assert!(all.values().any(|stats| stats.segments > 1), "{all:?}");
    assert!(all.values().any(|stats| stats.shared_segments > 0), "{all:?}");
    db.drop_keyspace("keyspace 3").unwrap();
    assert!(!db.keyspace_stats().contains_key("keyspace 3"));
}
