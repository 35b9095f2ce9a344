//! docs/grafana.json against the metrics of live stores.

use crate::exposition::{Family, read};
use crate::support::fast_dir;
use serde_json::Value;
use sidebloom::{Exposition, Options};
use std::collections::{BTreeMap, BTreeSet};

/// All that a writer and its follower show, with every option that adds metrics.
fn metrics_of_live_stores() -> BTreeMap<String, Family> {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let writer = Options::new().open(&path).unwrap();
    writer.put("key", "value").unwrap();
    writer.flush().unwrap();
    let follower = Options::new().latency_histograms(true).follow(true).open(&path).unwrap();
    let mut metrics = Exposition::new();
    metrics.add_store("writer", &writer).unwrap();
    metrics.add_store("follower", &follower).unwrap();
    read(&metrics.to_string()).unwrap()
}

/// The text of all fields of these names.
fn texts<'a>(json: &'a Value, fields: &[&str], found: &mut Vec<&'a str>) {
    match json {
        Value::Object(object) => {
            for (name, value) in object {
                if let (true, Some(text)) = (fields.contains(&name.as_str()), value.as_str()) {
                    found.push(text);
                }
                texts(value, fields, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| texts(value, fields, found)),
        _ => {}
    }
}

/// The words of an expression that are metrics.
fn metrics_in(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("sidebloom_"))
}

#[test]
fn every_metric_of_the_dashboard_is_in_a_live_exposition() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/grafana.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let metrics = metrics_of_live_stores();
    let names: BTreeSet<&str> =
        metrics.values().flat_map(|family| &family.samples).map(|sample| sample.name.as_str()).collect();
    let mut expressions = Vec::new();
    texts(&dashboard, &["expr", "query", "definition"], &mut expressions);
    let unknown: Vec<&str> =
        expressions.iter().flat_map(|e| metrics_in(e)).filter(|name| !names.contains(name)).collect();
    assert!(unknown.is_empty(), "the dashboard shows what no store has: {unknown:?}");
    // Labels, too.
    for label in ["level", "keyspace", "resource", "reason", "store"] {
        let has = |sample: &crate::exposition::Sample| sample.label(label).is_some();
        let is_used = expressions.iter().any(|e| e.contains(label));
        let is_known = metrics.values().flat_map(|family| &family.samples).any(has);
        assert!(is_known || !is_used || label == "keyspace", "{label}");
    }
    let rate_of_gauge = |expression: &&&str| {
        let rated = expression.split("rate(").skip(1).chain(expression.split("increase(").skip(1));
        rated
            .filter_map(|rest| metrics_in(rest).next())
            .any(|name| metrics.get(name).is_some_and(|f| f.kind == "gauge"))
    };
    let wrong: Vec<_> = expressions.iter().filter(rate_of_gauge).collect();
    assert!(wrong.is_empty(), "rates of gauges: {wrong:?}");
}

#[test]
fn the_dashboard_is_for_any_data_source_and_shows_what_matters() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/grafana.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(variables.iter().any(|v| v["name"] == "datasource" && v["type"] == "datasource"));
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
            let expression = target["expr"].as_str().unwrap();
            assert!(metrics_in(expression).next().is_some(), "{expression}");
            assert_eq!(expression.matches('(').count(), expression.matches(')').count(), "{expression}");
        }
    }
    let mut expressions = Vec::new();
    texts(&dashboard, &["expr"], &mut expressions);
    let shown: BTreeSet<&str> = expressions.iter().flat_map(|e| metrics_in(e)).collect();
    for needed in [
        "sidebloom_memtable_bytes",
        "sidebloom_block_cache_bytes",
        "sidebloom_memtables_waiting",
        "sidebloom_level_runs",
        "sidebloom_segments_quarantined",
        "sidebloom_failed",
        "sidebloom_shortages_total",
        "sidebloom_filters_unavailable_total",
        "sidebloom_filter_false_positives_total",
    ] {
        assert!(shown.contains(needed), "{needed}");
    }
}
