//! A second opinion on a history: that of [adya](https://docs.rs/adya), a checker by others, which reads
//! histories as Elle does.
//!
//! It also asks for real time: a transaction that began after another one had ended comes after it.

use crate::history::{Done, Event, Outcome};
use adya::{History, Opts, Valid, Workload};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Checks what happened against the lists in the end.
pub fn check(events: &[Event], lists: &BTreeMap<u64, Vec<u64>>) -> Result<(), String> {
    let text = exported(events, lists);
    let history = History::from_json(&text).map_err(|error| error.to_string())?;
    let report = adya::check(&history, Workload::ListAppend, &Opts::default());
    // Without any dependency, nobody can tell.
    if report.valid == Valid::True || report.anomaly_types == ["empty-transaction-graph"] {
        return Ok(());
    }
    let why = report.anomalies.values().flatten().map(|anomaly| anomaly.explanation.as_str());
    let why = why.collect::<Vec<_>>().join("\n");
    Err(format!("the second opinion: {:?}: {why}\n{text}", report.anomaly_types))
}

/// The history, one operation a line. Each transaction is a process of its own; the last one reads all lists.
fn exported(events: &[Event], lists: &BTreeMap<u64, Vec<u64>>) -> String {
    let ended = |event: &Event| match event {
        Event::Ended(done, outcome) => Some((done.clone(), *outcome)),
        Event::Began(_) => None,
    };
    let known: BTreeMap<u64, (Done, Outcome)> =
        events.iter().filter_map(ended).map(|(done, outcome)| (done.number, (done, outcome))).collect();
    let number = known.keys().last().map_or(0, |last| last + 1);
    let keys: BTreeSet<u64> =
        known.values().flat_map(|(done, _)| done.reads.iter().map(|(key, _)| *key)).collect();
    let mut all: BTreeMap<u64, Vec<u64>> = keys.into_iter().map(|key| (key, Vec::new())).collect();
    all.extend(lists.iter().map(|(key, numbers)| (*key, numbers.clone())));
    let reads = all.into_iter().collect();
    let last = Done { number, reads, appends: BTreeSet::new() };
    let mut lines = Vec::new();
    for event in events {
        match event {
            Event::Began(number) => {
                lines.extend(known.get(number).map(|(done, _)| operation("invoke", done, false)));
            }
            Event::Ended(done, Outcome::Committed) => lines.push(operation("ok", done, true)),
            Event::Ended(done, Outcome::Conflict) => lines.push(operation("fail", done, false)),
            Event::Ended(done, Outcome::Unknown) => lines.push(operation("info", done, false)),
        }
    }
    lines.extend([operation("invoke", &last, false), operation("ok", &last, true)]);
    lines.join("\n")
}

/// An operation: what it reads (once it is known, with what it found), then what it appends.
fn operation(kind: &str, done: &Done, is_known: bool) -> String {
    let found = |numbers: &Vec<u64>| if is_known { json!(numbers) } else { Value::Null };
    let reads = done.reads.iter().map(|(key, numbers)| json!(["r", key, found(numbers)]));
    let appends = done.appends.iter().map(|key| json!(["append", key, done.number]));
    let value: Vec<Value> = reads.chain(appends).collect();
    json!({ "type": kind, "process": done.number, "value": value }).to_string()
}
