//! `sidebloom stats --keyspace`: what a keyspace has on disk.

use crate::context::Failure;
use crate::expiries::Expiries;
use crate::human;
use serde::Serialize;
use sidebloom::KeyspaceStats;
use std::io::Write;

#[derive(Serialize)]
pub struct Report {
    segments: usize,
    /// Segments with keys of other keyspaces as well. What they have is not in the other figures.
    shared_segments: usize,
    keys: u64,
    tombstones: u64,
    range_tombstones: u64,
    #[serde(flatten)]
    expiries: Expiries,
    data_bytes: u64,
    /// Segments with a usable filter.
    filters: usize,
    filter_bytes: u64,
    bits_per_key: f64,
    expected_fpr: f64,
    /// Absent keys looked up by --probe, and how many of the probed filters let them through.
    probed: u64,
    observed_fpr: Option<f64>,
}

impl Report {
    pub fn new(stats: &KeyspaceStats, probed: u64, observed_fpr: Option<f64>) -> Self {
        Report {
            segments: stats.segments,
            shared_segments: stats.shared_segments,
            keys: stats.keys,
            tombstones: stats.tombstones,
            range_tombstones: stats.range_tombstones,
            expiries: Expiries::new(stats.expiring, stats.expired, stats.next_expiry),
            data_bytes: stats.data_bytes,
            filters: stats.filters,
            filter_bytes: stats.filter_bytes,
            bits_per_key: 8.0 * stats.filter_bytes as f64 / stats.keys.max(1) as f64,
            expected_fpr: stats.expected_fpr,
            probed,
            observed_fpr,
        }
    }

    pub fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let [segments, shared] = [self.segments, self.shared_segments].map(|n| human::count(n as u64));
        let [keys, filters] = [self.keys, self.filters as u64].map(human::count);
        self.expiries.print(self.keys, out)?;
        let [data, filter_bytes] = [self.data_bytes, self.filter_bytes].map(|n| human::bytes(n as f64));
        writeln!(out, "segments of its own: {segments}; shared with other keyspaces: {shared}")?;
        writeln!(out, "in its own: {keys} keys, {data}")?;
        writeln!(out, "filters: {filters}, {filter_bytes}, {:.1} bits per key", self.bits_per_key)?;
        let expected = human::percent(self.expected_fpr, 1.0);
        writeln!(out, "expected false positives of a segment: {expected}")?;
        if let Some(observed) = self.observed_fpr {
            let (observed, probed) = (human::percent(observed, 1.0), human::count(self.probed));
            writeln!(out, "observed, in lookups of {probed} absent keys: {observed}")?;
        }
        Ok(())
    }
}
