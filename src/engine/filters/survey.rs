//! How far the filters are from what is planned for them. A filter is chosen while its segment is written; by
//! the time the store is idle, the levels may have other sizes, and missing keys may be looked up elsewhere.

use super::plan::FilterPlan;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::SegmentMeta;
use crate::sync::assert_unlocked;
use std::sync::Arc;

/// New filters are worth their cost when Σ FPR deviates from the plans by more than this fraction, or the
/// filters take so much more memory.
const TOLERANCE: f64 = 0.05;
/// About how many times all segments are scanned before the last of them has its new filter.
const LOOKS_MAX: usize = 64;

/// The filters of some segments, compared with their plans.
#[derive(Default)]
pub(super) struct Survey<'a> {
    segments: usize,
    sum_fpr: f64,
    planned_fpr: f64,
    bits: f64,
    planned_bits: f64,
    /// Segments with other filters than planned, and what they add to Σ FPR.
    misfits: Vec<(f64, &'a LiveSegment)>,
}

impl<'a> Survey<'a> {
    /// Adds the segments that `is_planned` accepts, whose plan this is. Only those that `may_change` can get
    /// other filters.
    pub fn add(
        &mut self,
        plan: &FilterPlan,
        live: &'a LiveSet,
        is_planned: impl Fn(&LiveSegment) -> bool,
        may_change: impl Fn(&LiveSegment) -> bool,
    ) {
        assert_unlocked();
        self.planned_fpr += plan.share * plan.sum_fpr;
        self.planned_bits += plan.bits;
        for (number, level) in live.levels().iter().enumerate() {
            let planned = level.segments().iter().filter(|segment| is_planned(segment));
            let keys: u64 = planned.clone().map(|segment| segment.meta.entries).sum();
            for segment in planned {
                self.segments += 1;
                let Some(filter) = segment.verified_facts() else { continue };
                let weight = if number == 0 { 1.0 } else { segment.meta.entries as f64 / keys.max(1) as f64 };
                let fpr = plan.share * weight * filter.expected_fpr();
                self.sum_fpr += fpr;
                self.bits += 8.0 * filter.filter_bytes() as f64;
                if !plan.suits(segment) && may_change(segment) {
                    self.misfits.push((fpr, segment));
                }
            }
        }
    }

    /// The segments whose filters should be replaced, worst first. Empty if all is about as planned or no
    /// change would help. At most one segment in [`LOOKS_MAX`] per scan, so that not every replacement needs
    /// a scan.
    pub fn worst(mut self) -> Vec<Arc<SegmentMeta>> {
        let deviates = (self.sum_fpr - self.planned_fpr).abs() > TOLERANCE * self.planned_fpr
            || self.bits > (1.0 + TOLERANCE) * self.planned_bits;
        self.misfits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let most = if deviates { 1 + self.segments / LOOKS_MAX } else { 0 };
        self.misfits.into_iter().take(most).map(|(_, segment)| Arc::clone(&segment.meta)).collect()
    }
}
