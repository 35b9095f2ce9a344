//! The filters of a store: planned by its policy, verified in the background after opening, rebuilt if
//! unusable (I2), retuned on request and while the store is idle (I3).

mod check;
pub(crate) mod demand;
pub(crate) mod level_sizes;
pub(crate) mod plan;
pub(crate) mod plans;
mod rebuild;
mod retune;
mod retune_order;
pub(crate) mod sidecar_queue;
mod survey;
mod unmap;
mod warm;

pub use rebuild::RebuildReport;

use self::plans::{Coming, FilterPlans};
use self::retune_order::Retunes;
use super::publish::Publisher;
use super::shared::Shared;
use super::storage::Storage;
use crate::id::FileId;
use crate::key::Space;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::SegmentMeta;
use crate::options::FilterPolicy;
use crate::sync::{Mutex, lock};
use std::sync::Arc;

/// The policy for new segments. A rebuild of all filters, and a change of the options, replace it.
struct PolicyInForce {
    policy: FilterPolicy,
    /// Segments below this number were written before the store was opened, or under another policy. An idle
    /// store leaves their filters alone.
    since: FileId,
}

/// Keeps the filters of all segments.
pub(crate) struct FilterKeeper {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    policy: Mutex<PolicyInForce>,
    /// What the last scan of all filters found. No other lock is taken while this is held.
    retunes: Mutex<Retunes>,
}

impl FilterKeeper {
    pub fn new(shared: Arc<Shared>, publisher: Arc<Publisher>) -> Self {
        let (policy, since) = (shared.storage.options.filter_policy, shared.storage.first_own_id);
        let policy = Mutex::new(PolicyInForce { policy, since });
        FilterKeeper { shared, publisher, policy, retunes: Mutex::default() }
    }

    /// The files that include the filters.
    pub fn storage(&self) -> &Storage {
        &self.shared.storage
    }

    /// The plans for a live set without the segments in `leaving`, and with what is coming.
    pub fn plans<'a>(
        &self,
        live: &'a Arc<LiveSet>,
        leaving: impl Iterator<Item = &'a LiveSegment> + Clone,
        coming: &[Coming],
    ) -> FilterPlans {
        let storage = self.storage();
        let needs = storage.filter_needs(live);
        FilterPlans::new(needs, live, self.policy(), storage.prefix_set(), leaving, coming)
    }

    /// Whether a segment shall have a filter.
    pub fn wants_filter(&self, meta: &SegmentMeta) -> bool {
        let options = || meta.owner().map(|space| self.storage().keyspaces.options(space));
        self.storage().filters_on()
            && (Space::head_bytes(&meta.largest) == 0
                || options().and_then(|of| of.filter_policy).is_none_or(|policy| policy.is_on()))
    }

    /// The policy for new segments.
    pub fn policy(&self) -> FilterPolicy {
        lock(&self.policy).policy
    }

    /// Uses another policy for new segments, as if the store was opened with it: earlier ones keep their
    /// filters. Filters stay on, or off.
    pub fn set_policy(&self, policy: FilterPolicy) {
        let mut now = lock(&self.policy);
        if now.policy != policy {
            *now = PolicyInForce { policy, since: self.storage().next_id() };
        }
    }
}
