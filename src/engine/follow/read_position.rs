//! How far a follower has read.

use super::filters::FollowedFilters;
use super::logs::FollowedLogs;
use super::versions::{HeldVersion, Versions};
use crate::fs::Stamp;
use crate::live::LiveSet;
use crate::manifest::{ManifestState, ManifestTail};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Instant, Mutex, lock};
use std::sync::Arc;
use std::time::Duration;

/// What a follower has read so far.
pub(crate) struct Following {
    pub versions: Arc<Versions>,
    pub at: Mutex<Position>,
    /// Only the thread that follows uses them.
    pub filters: Mutex<FollowedFilters>,
    pub since: Instant,
    /// The follower knows everything written up to this time, in microseconds after `since`.
    pub current_until: AtomicU64,
}

pub(crate) struct Position {
    pub state: ManifestState,
    pub version: Arc<HeldVersion>,
    /// How far the manifest was read.
    pub tail: ManifestTail,
    pub manifest: Option<Stamp>,
    pub dir: Listing,
    pub logs: FollowedLogs,
    pub failing: bool,
}

/// When the directory was listed.
#[derive(Clone, Copy)]
pub(crate) struct Listing {
    pub stamp: Option<Stamp>,
    /// When this stamp was first seen.
    pub since: Instant,
    /// Whether another listing would be the same, as long as the stamp is.
    pub is_settled: bool,
}

impl Following {
    /// Keeps the files of the current version while anybody has its segments, even after the store is closed.
    pub fn leave_to(&self, live: &LiveSet) {
        let at = lock(&self.at);
        live.segments().for_each(|s| s.file.hold(Arc::clone(&at.version) as _));
    }

    /// Everything written longer ago than this is visible.
    pub fn age(&self) -> Duration {
        let current = Duration::from_micros(self.current_until.load(Ordering::Acquire));
        self.since.elapsed().saturating_sub(current)
    }
}
