//! `versus filters`: filters alone, without a store.

use serde::{Deserialize, Serialize};

/// One filter at one size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FilterResult {
    /// As tables show it.
    pub name: String,
    /// Keys in it.
    pub keys: u64,
    /// Its size.
    pub bits_per_key: f64,
    /// The share of absent keys for which it says "maybe".
    pub fpr: f64,
    /// Nanoseconds of a question about an absent key, one after the other.
    pub probe_ns: f64,
    /// Nanoseconds of a question, many asked at once; `None` where the filter has no way to.
    pub batched_ns: Option<f64>,
    /// Nanoseconds to build it, for each key.
    pub build_ns: f64,
}

/// As a table.
pub fn rows(results: &[FilterResult]) -> Vec<Vec<String>> {
    use crate::format::{count, number};
    let head = ["filter", "keys", "bits/key", "false positives", "probe ns", "batched ns", "build ns/key"];
    let row = |one: &FilterResult| {
        vec![
            one.name.clone(),
            count(one.keys as f64),
            number(one.bits_per_key),
            format!("{} %", number(100.0 * one.fpr)),
            number(one.probe_ns),
            one.batched_ns.map_or("–".to_owned(), number),
            number(one.build_ns),
        ]
    };
    std::iter::once(head.map(str::to_owned).to_vec()).chain(results.iter().map(row)).collect()
}
