//! Tests of the measurements, on every filter and on fake ones.

use super::contestants::{BuildFn, contestants};
use super::filter::Filter;
use super::measure::Effort;
use super::rows;
use crate::error::Result;
use std::collections::HashSet;

const EFFORT: Effort = Effort { queries: 4000, extra_queries: 2_000_000, crowd_bytes: 1 << 16 };

/// Knows its keys, passes one in `wrong` absent keys, and in batches loses keys above `batched`.
#[derive(Clone)]
struct MadeUp {
    keys: HashSet<u64>,
    wrong: u64,
    batched: Option<u64>,
}

impl Filter for MadeUp {
    fn bytes(&self) -> usize {
        self.keys.len()
    }

    fn copy(&self) -> Result<Box<dyn Filter>> {
        Ok(Box::new(self.clone()))
    }

    fn may_contain(&self, prepared: u64) -> bool {
        self.keys.contains(&prepared) || prepared.is_multiple_of(self.wrong)
    }

    fn batched(&self, _: &[u64], prepared: &[u64]) -> Option<usize> {
        let limit = self.batched?;
        Some(prepared.iter().filter(|&&key| key < limit && self.may_contain(key)).count())
    }
}

fn made_up(wrong: u64, batched: Option<u64>) -> BuildFn {
    Box::new(move |keys| Ok(Box::new(MadeUp { keys: keys.iter().copied().collect(), wrong, batched })))
}

#[test]
fn every_filter_is_measured_on_misses_and_hits() {
    let effort = Effort { extra_queries: 100_000, ..EFFORT };
    for (name, build) in contestants() {
        let one = effort.measure(name, 5000, &build, true).unwrap();
        assert!(one.probe_ns > 0.0 && one.hit_ns > Some(0.0), "{one:?}");
        assert_eq!(one.batched_ns.is_some(), one.batched_hit_ns.is_some(), "{one:?}");
        assert!(one.crowded_ns.is_some(), "{one:?}");
        // No filter is smaller than the bound, but with few false positives it may seem so.
        assert!(one.over_bound.is_none_or(|times| (0.9..3.0).contains(&times)), "{one:?}");
        let rows = rows(std::slice::from_ref(&one));
        assert_eq!(rows[0].len(), rows[1].len());
    }
}

#[test]
fn rare_false_positives_are_counted_over_more_queries() {
    let one = EFFORT.measure("made up".to_owned(), 1000, &made_up(1000, None), false).unwrap();
    let error = 1.0 / (one.fpr * one.fpr_queries as f64).sqrt();
    assert!(error <= 0.03 && one.fpr_queries < 1_500_000, "{one:?}");
    assert!((one.fpr * 1000.0 - 1.0).abs() < 0.15, "{one:?}");
    // Eight bits per key, where log2(1000) = 9.97 would do.
    assert!(one.over_bound.is_some_and(|times| (times - 0.803).abs() < 0.02), "{one:?}");

    let frequent = EFFORT.measure("made up".to_owned(), 1000, &made_up(2, None), false).unwrap();
    assert_eq!(frequent.fpr_queries, EFFORT.queries, "{frequent:?}");

    let never = EFFORT.measure("made up".to_owned(), 1000, &made_up(u64::MAX, None), false).unwrap();
    assert_eq!((never.fpr, never.over_bound), (0.0, None), "{never:?}");
    assert!(never.fpr_queries >= EFFORT.queries + EFFORT.extra_queries, "{never:?}");
}

#[test]
fn a_filter_that_loses_keys_in_batches_ends_the_run() {
    let all = EFFORT.measure("made up".to_owned(), 1000, &made_up(100, Some(u64::MAX)), false).unwrap();
    assert!(all.batched_hit_ns.is_some());
    let error =
        EFFORT.measure("made up".to_owned(), 1000, &made_up(100, Some(u64::MAX / 2)), false).unwrap_err();
    assert!(error.to_string().starts_with("WRONG ANSWER: made up"), "{error}");
}
