//! An idle store replaces filters that no longer suit the sizes of its levels.

use super::FilterKeeper;
use crate::error::Result;
use crate::filter::FilterSpec;
use crate::live::LiveSegment;
use crate::manifest::SegmentMeta;
use crate::sync::lock;
use std::sync::Arc;

impl FilterKeeper {
    /// The segment, among those written since opening and since the policy last changed, whose filter should
    /// be replaced first, with its new filter. `None` if the filters are as planned.
    pub fn segment_to_retune(&self) -> Option<(Arc<SegmentMeta>, FilterSpec)> {
        let live = self.shared.live();
        let plans = self.plans(&live, std::iter::empty(), &[]);
        if !plans.are_on() {
            return None;
        }
        let since = lock(&self.policy).since;
        let is_own = |segment: &LiveSegment| segment.meta.id >= since;
        let meta = Arc::clone(&lock(&self.retunes).next(&plans, &live, is_own)?.meta);
        let spec = plans.filter_for(&meta)?;
        Some((meta, spec))
    }

    /// Gives a segment another filter, unless the segment is gone or in quarantine.
    pub fn retune(&self, meta: &SegmentMeta, spec: FilterSpec) -> Result<()> {
        match self.shared.live().now(meta).filter(|s| !s.is_quarantined()) {
            Some(segment) => self.rebuild_sidecar(segment, spec).map(drop),
            None => Ok(()),
        }
    }
}
