//! Rebuilds all filters for another policy. Segments keep their bytes (I3).

use super::FilterKeeper;
use super::plans::{FilterPlans, segments_of};
use crate::error::{Error, Result};
use crate::id::FileKind;
use crate::key::Space;
use crate::live::LiveSegment;
use crate::manifest::SegmentMeta;
use crate::options::FilterPolicy;
use crate::sync::lock;
use std::ops::ControlFlow;

/// How often a rebuild of all filters plans the remaining ones again, after the first few times.
const PLANS_MAX: u64 = 64;

/// The progress or result of [`Db::rebuild_filters`](crate::Db::rebuild_filters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RebuildReport {
    /// Segments that got a new sidecar.
    pub segments: u64,
    /// Segments whose filter already matches the policy.
    pub kept: u64,
    /// Quarantined segments, which are skipped because part of them cannot be read.
    pub quarantined: u64,
    /// All segments. More than the numbers above add up to, if the rebuild stopped or segments were removed.
    pub total: u64,
    /// Keys in the rebuilt segments, tombstones included.
    pub keys: u64,
    /// Size of the new filters, in bytes.
    pub filter_bytes: u64,
}

impl FilterKeeper {
    /// Gives every segment the sidecar that the policy asks for. Segments keep their bytes (I3).
    pub fn rebuild_filters(
        &self,
        policy: FilterPolicy,
        progress: &mut dyn FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        self.shared.check_writable()?;
        policy.validate()?;
        if !policy.is_on() {
            return Err(Error::InvalidArgument("the policy has no filters to rebuild".into()));
        }
        if self.shared.storage.filters_on() {
            lock(&self.policy).policy = policy;
        }
        let segments: Vec<LiveSegment> = self.shared.live().segments().cloned().collect();
        self.rebuild(policy, &segments, progress)
    }

    /// Gives the segments of a keyspace, without those that it shares, the sidecars that its options ask for.
    pub fn rebuild_filters_of(
        &self,
        space: Space,
        progress: &mut dyn FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        self.shared.check_writable()?;
        let segments: Vec<LiveSegment> = segments_of(&self.shared.live(), space).cloned().collect();
        self.rebuild(self.policy(), &segments, progress)
    }

    fn rebuild(
        &self,
        policy: FilterPolicy,
        segments: &[LiveSegment],
        progress: &mut dyn FnMut(&RebuildReport) -> ControlFlow<()>,
    ) -> Result<RebuildReport> {
        let storage = &self.shared.storage;
        let plan_now = || self.plans_for(policy);
        let mut plans = plan_now();
        let mut report = RebuildReport { total: segments.len() as u64, ..Default::default() };
        let replan_every = (report.total / PLANS_MAX).max(1);
        let mut unreadable = None;
        for segment in segments {
            if progress(&report).is_break() {
                break;
            }
            self.shared.check_writable()?;
            if segment.is_quarantined() {
                report.quarantined += 1;
                continue;
            }
            let Some(spec) = plans.filter_for(&segment.meta) else {
                let is_on = self.shared.live().now(&segment.meta).is_some_and(|now| now.sidecar.is_some());
                if is_on {
                    self.remove_filter(&segment.meta)?;
                }
                *if is_on { &mut report.segments } else { &mut report.kept } += 1;
                continue;
            };
            let prefixes = storage.prefix_set_of(segment.meta.owner());
            let has_prefixes = segment.verified_facts().is_some_and(|filter| *filter.prefixes() == prefixes);
            if has_prefixes && plans.suits(segment) {
                report.kept += 1;
                continue;
            }
            match self.rebuild_sidecar(segment, spec) {
                Ok(Some(sidecar)) => {
                    report.segments += 1;
                    report.keys += segment.meta.entries;
                    let bytes = sidecar.facts().map_or(0, |facts| facts.filter_bytes());
                    report.filter_bytes = report.filter_bytes.saturating_add(bytes);
                    // New filters tell how many prefixes the others may get. Each plan scans all segments.
                    let is_time =
                        report.segments.is_power_of_two() || report.segments.is_multiple_of(replan_every);
                    if !prefixes.is_empty() && is_time {
                        plans = plan_now();
                    }
                }
                Ok(None) => {}
                Err(error) if self.publisher.quarantine(&error) => unreadable = Some(error),
                Err(error) => return Err(error),
            }
        }
        if report.quarantined > 0 {
            tracing::warn!(segments = report.quarantined, "skipped the filters of segments in quarantine");
        }
        unreadable.map_or(Ok(report), Err)
    }

    fn plans_for(&self, policy: FilterPolicy) -> FilterPlans {
        let storage = &self.shared.storage;
        let live = self.shared.live();
        let needs = storage.filter_needs(&live);
        FilterPlans::new(needs, &live, policy, storage.prefix_set(), std::iter::empty(), &[])
    }

    /// Removes the filter of a segment that shall have none.
    fn remove_filter(&self, meta: &SegmentMeta) -> Result<()> {
        let _publishing = self.publisher.hold();
        if self.shared.live().now(meta).is_some() {
            self.install(meta, None);
            self.shared.storage.remove_if_there(&self.shared.storage.path_of(meta.id, FileKind::Filter));
        }
        Ok(())
    }
}
