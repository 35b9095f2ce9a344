//! Each of sidebloom's policies against each of RocksDB's own filters.

use super::record::{PoliciesRecord, PolicyResult};
use super::workloads::{COLD, FOUND, MISSING, MULTI_MISSING};
use crate::format::{shown, times};
use crate::rocks_filter::RocksFilter;
use crate::table::headed;

const HEAD: [&str; 9] = [
    "policy",
    "against",
    "filter size",
    "false positives",
    "missing key, speed",
    "32 missing keys, speed",
    "found key, speed",
    "missing key, cold, speed",
    "disk reads, cold",
];

/// A row for each pair. Sizes, rates and reads are shares of RocksDB's filter's, so less is better; speeds
/// are medians of the ratios of each round, so more is better.
pub fn rows(record: &PoliciesRecord) -> Vec<Vec<String>> {
    let is_plugin = |of: &&PolicyResult| matches!(of.filter, RocksFilter::Plugin(_));
    let is_own = |of: &&PolicyResult| matches!(of.filter, RocksFilter::Bloom(_) | RocksFilter::Ribbon(_));
    let plugins = record.policies.iter().filter(is_plugin);
    let pairs = plugins.flat_map(|ours| record.policies.iter().filter(is_own).map(move |own| (ours, own)));
    headed(HEAD, pairs.map(|(ours, own)| row(ours, own)))
}

fn row(ours: &PolicyResult, own: &PolicyResult) -> Vec<String> {
    let share = |figure: &dyn Fn(&PolicyResult) -> Option<f64>| {
        let share = figure(ours).zip(figure(own)).map(|(ours, own)| ours / own);
        shown(share.filter(|share| share.is_finite()), times)
    };
    let speed = |workload: &str| shown(ours.speed(own, workload), times);
    vec![
        ours.filter.to_string(),
        own.filter.to_string(),
        share(&PolicyResult::bits_per_key),
        share(&|of| of.answers.rate()),
        speed(MISSING),
        speed(MULTI_MISSING),
        speed(FOUND),
        speed(COLD),
        share(&|of| of.median(COLD, |o| o.disk_reads_per_op)),
    ]
}
