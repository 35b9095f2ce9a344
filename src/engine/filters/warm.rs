//! Reads filters and index partitions before lookups need them.

use super::FilterKeeper;
use crate::error::Result;
use crate::live::LiveSegment;
use crate::manifest::SegmentMeta;
use crate::sidecar::Sidecar;
use std::sync::Arc;
use std::time::Duration;

impl FilterKeeper {
    /// Starts to read the sidecars of some segments.
    pub fn read_sidecars_ahead(&self, segments: &[Arc<SegmentMeta>]) {
        let live = self.shared.live();
        let sidecars = segments.iter().filter_map(|meta| live.now(meta)?.sidecar.as_deref());
        sidecars.for_each(Sidecar::will_need);
    }

    /// Reads a segment's index partitions that are not in memory yet.
    pub fn warm_index(&self, meta: &SegmentMeta) -> Result<()> {
        self.shared.live().now(meta).map_or(Ok(()), |segment| self.read_index(segment))
    }

    fn read_index(&self, segment: &LiveSegment) -> Result<()> {
        if !self.shared.storage.options.has_segments {
            return Ok(());
        }
        match segment.file.open().and_then(|open| open.warm_index()) {
            Err(error) if self.is_live(&segment.meta) => Err(error),
            _ => Ok(()),
        }
    }

    /// Verifies every sidecar and reads the index partitions now, in this thread.
    pub fn warm(&self) -> Result<()> {
        for segment in self.shared.live().segments() {
            match self.warm_one(segment) {
                Err(_) if segment.is_quarantined() => continue, // Known to be damaged.
                Err(error) => {
                    self.publisher.quarantine(&error);
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn warm_one(&self, segment: &LiveSegment) -> Result<()> {
        let meta = &segment.meta;
        self.check_sidecar(meta)?;
        while self.shared.live().now(meta).is_some_and(LiveSegment::waits_for_verification) {
            crate::sync::sleep(Duration::from_millis(1)); // A background thread is verifying it.
            self.check_sidecar(meta)?;
        }
        self.read_index(segment)
    }
}
