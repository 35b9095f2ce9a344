//! The statistics of a store and of a guard.

use crate::boundary::run;
use crate::bytes::{Out, text};
use crate::db::{Db, with_db};
use crate::error::{Code, Error};
use crate::value::Value;
use sidebloom::{LevelStats, Stats};
use std::ffi::c_char;
use std::fmt::Display;

/// A JSON object. No name and no text here has characters that JSON would have to escape.
pub fn object<N: AsRef<str>>(fields: impl IntoIterator<Item = (N, String)>) -> String {
    let fields: Vec<String> =
        fields.into_iter().map(|(name, value)| format!("\"{}\":{value}", name.as_ref())).collect();
    format!("{{{}}}", fields.join(","))
}

/// A field of a JSON object.
pub fn field(name: &'static str, value: impl Display) -> (&'static str, String) {
    (name, value.to_string())
}

/// A field with a number that JSON may not have: `null` unless it is finite.
pub fn fraction(name: &'static str, value: f64) -> (&'static str, String) {
    (name, if value.is_finite() { value.to_string() } else { "null".to_owned() })
}

fn level(level: &LevelStats) -> String {
    let kinds: Vec<String> = level.filter_kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
    object([
        field("level", level.level),
        field("runs", level.runs),
        field("segments", level.segments),
        field("keys", level.keys),
        field("tombstones", level.tombstones),
        field("data_bytes", level.data_bytes),
        field("filter_bytes", level.filter_bytes),
        field("filter_kinds", format!("[{}]", kinds.join(","))),
        fraction("expected_fpr", level.expected_fpr),
    ])
}

fn json(stats: &Stats) -> String {
    let levels: Vec<String> = stats.levels.iter().map(level).collect();
    object([
        field("counters", object(stats.counters().map(|(name, count)| field(name, count)))),
        field("memtable_bytes", stats.memtable_bytes),
        field("index_bytes", stats.index_bytes),
        field("segments_open", stats.segments_open),
        field("segments_quarantined", stats.segments_quarantined),
        field("filters_mapped", stats.filters_mapped),
        fraction("write_amplification", stats.write_amplification()),
        fraction("expected_false_positives", stats.expected_false_positives()),
        field("levels", format!("[{}]", levels.join(","))),
    ])
}

/// The counters of the store since it was opened, and the state of its levels, as one line of JSON. Free it
/// with sb_value_free.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_stats(db: Option<&Db>, json: *mut *mut Value, error: *mut *mut Error) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let out = Out::handle(json, "json")?;
            let stats = with_db(db, |db| Ok(db.db.stats()))?;
            out.give(Value::own(self::json(&stats).into_bytes()));
            Ok(())
        })
    }
}

/// One counter of the store, by its name in sb_stats: "filter_negatives".
///
/// SB_INVALID_ARGUMENT if there is none.
///
/// # Safety
/// Pointers are null, or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sb_counter(
    db: Option<&Db>,
    name: *const c_char,
    count: *mut u64,
    error: *mut *mut Error,
) -> Code {
    // SAFETY: the caller's promise.
    unsafe {
        run(error, || {
            let (out, name) = (Out::new(count, 0, "count")?, text(name, "name")?);
            let stats = with_db(db, |db| Ok(db.db.stats()))?;
            let found = stats.counters().find(|(known, _)| *known == name);
            let known = || stats.counters().map(|(known, _)| known).collect::<Vec<_>>().join(", ");
            let unknown = || Error::invalid(format!("counter \"{name}\"; there are {}", known()));
            out.set(found.ok_or_else(unknown)?.1);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_of_a_store_with_segments_are_json() {
        let dir = tempfile::tempdir().unwrap();
        let db = sidebloom::Db::open(dir.path().join("store")).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        let stats: serde_json::Value = serde_json::from_str(&json(&db.stats())).unwrap();
        assert_eq!(stats["counters"]["user_bytes"], db.stats().user_bytes);
        assert_eq!(stats["levels"][0]["keys"], 1);
        assert!(stats["levels"][0]["filter_kinds"].is_array());
        let odd = object([fraction("a", f64::NAN), fraction("b", 0.5), field("c", true)]);
        let odd: serde_json::Value = serde_json::from_str(&odd).unwrap();
        assert_eq!(odd, serde_json::json!({"a": null, "b": 0.5, "c": true}));
    }
}
