//! What `benches/` need from a store to measure its parts without it.

use super::handle::Db;
use crate::filter::{FilterKind, KeyHasher, Lines};

/// A segment's place and a copy of its filter.
#[derive(Debug)]
#[doc(hidden)]
pub struct SegmentFilter {
    /// Its level.
    pub level: usize,
    /// Its smallest and its largest key.
    pub keys: [Vec<u8>; 2],
    /// How the lines are read.
    pub kind: FilterKind,
    /// The lines.
    pub lines: Lines,
}

impl Db {
    /// The longest time that a thread held the lock shared by background threads, writers and waiters, since
    /// the last call: in nanoseconds of CPU time.
    #[doc(hidden)]
    pub fn take_longest_under_lock(&self) -> u64 {
        self.engine().shared.control.take_longest_nanos()
    }

    /// The filters of all segments, in the order in which a lookup probes them, and their common hash.
    #[doc(hidden)]
    pub fn segment_filters(&self) -> (Vec<SegmentFilter>, KeyHasher) {
        let live = self.engine().shared.live();
        let filters = live.segments().filter_map(|segment| {
            let (sidecar, meta) = (segment.sidecar.as_ref()?, &segment.meta);
            let keys = [meta.smallest.clone(), meta.largest.to_vec()];
            let (kind, lines) = sidecar.lines_in_memory()?;
            Some(SegmentFilter {
                level: usize::from(meta.place.last_level()),
                keys,
                kind,
                lines: Lines::from(lines),
            })
        });
        (filters.collect(), self.engine().shared.storage.header.hasher)
    }
}
