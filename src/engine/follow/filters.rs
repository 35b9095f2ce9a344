//! The sidecars of a store that another process writes. The writer replaces them when it rebuilds filters,
//! without a manifest edit.
//!
//! The replaced files would still give correct answers, but followers would not share the writer's filters.

use crate::engine::storage::Storage;
use crate::fs::Stamp;
use crate::id::{FileId, FileKind};
use crate::live::{LiveSegment, LiveSet};
use crate::sync::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a follower looks for replaced sidecars, if the directory has changed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The sidecars seen so far.
pub(crate) struct FollowedFilters {
    stamps: BTreeMap<FileId, Option<Stamp>>,
    /// The directory's stamp when they were seen.
    dir: Option<Stamp>,
    due: Instant,
}

impl FollowedFilters {
    /// The sidecars of the first view. The directory may change at any time after this.
    pub fn new(storage: &Storage, live: &LiveSet) -> Self {
        FollowedFilters { stamps: stamps(storage, live), dir: None, due: Instant::now() + LOOK_EVERY }
    }

    /// The segments whose sidecars were replaced since the last check. `dir` is the directory's stamp; `None`
    /// if it may still change within the same clock tick.
    pub fn replaced(&mut self, storage: &Storage, live: &LiveSet, dir: Option<Stamp>) -> BTreeSet<FileId> {
        let now = Instant::now();
        if now < self.due || dir.is_some() && dir == self.dir {
            return BTreeSet::new();
        }
        self.due = now + LOOK_EVERY;
        let found = stamps(storage, live);
        let is_replaced = |(id, stamp): &(&FileId, &Option<Stamp>)| {
            stamp.is_some() && self.stamps.get(id).is_some_and(|before| before != *stamp)
        };
        let replaced = found.iter().filter(is_replaced).map(|(id, _)| *id).collect();
        (self.stamps, self.dir) = (found, dir);
        replaced
    }
}

/// A sidecar that cannot be inspected counts as missing (I2).
fn stamps(storage: &Storage, live: &LiveSet) -> BTreeMap<FileId, Option<Stamp>> {
    let stamp = |s: &LiveSegment| {
        let path = storage.path_of(s.meta.id, FileKind::Filter);
        (s.meta.id, storage.fs.stamp(&path).unwrap_or(None))
    };
    live.segments().filter(|_| storage.filters_on()).map(stamp).collect()
}
