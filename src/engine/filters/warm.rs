//! Reading filters and index partitions before lookups need them.

use super::FilterKeeper;
use crate::error::Result;
use crate::id::FileId;
use crate::live::LiveSegment;
use crate::sidecar::Sidecar;
use std::time::Duration;

impl FilterKeeper {
    /// Starts to read the sidecars of some segments.
    pub fn read_sidecars_ahead(&self, ids: &[FileId]) {
        if !ids.is_empty() {
            let live = self.shared.live();
            let sidecars = live.segments().filter(|s| ids.contains(&s.meta.id));
            sidecars.filter_map(|s| s.sidecar.as_deref()).for_each(Sidecar::will_need);
        }
    }

    /// Reads the index partitions of some segments that are not in memory yet. Segments whose index is damaged are quarantined; any
    /// other error is returned once all segments were tried.
    pub fn warm_indexes(&self, ids: &[FileId]) -> Result<()> {
        let mut result = Ok(());
        for segment in self.shared.live().segments().filter(|s| ids.contains(&s.meta.id)) {
            if let Err(error) = self.warm_index(segment)
                && !self.publisher.quarantine(&error)
            {
                result = Err(error);
            }
        }
        result
    }

    fn warm_index(&self, segment: &LiveSegment) -> Result<()> {
        if !self.shared.storage.options.has_segments {
            return Ok(());
        }
        match segment.file.open().and_then(|open| open.warm_index()) {
            Err(error) if self.is_live(segment.meta.id) => Err(error),
            _ => Ok(()),
        }
    }

    /// Verifies every sidecar and reads the index partitions now, in this thread.
    pub fn warm(&self) -> Result<()> {
        for segment in self.shared.live().segments() {
            match self.warm_one(segment) {
                Err(_) if segment.is_quarantined() => continue, // Its damage is known.
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
        let id = segment.meta.id;
        self.check_sidecar(id)?;
        while self.shared.live().segments().any(|s| s.meta.id == id && s.waits_for_verification()) {
            crate::sync::sleep(Duration::from_millis(1)); // A background thread is verifying it.
            self.check_sidecar(id)?;
        }
        self.warm_index(segment)
    }
}
