//! Gives back the disk of a dropped keyspace: removes the segments that have only its rows, unread.

use super::Compactor;
use super::compaction::Compaction;
use crate::error::Result;

impl Compactor {
    /// Removes the segments whose keys are all within a range, which a range tombstone has deleted. Leaves
    /// those that a running compaction reads: like what is in other segments, later compactions drop their
    /// rows.
    pub fn drop_within(&self, start: &[u8], end: &[u8]) -> Result<()> {
        loop {
            let (live, running) = self.live_and_running()?;
            let Some(compaction) = Compaction::drop_within(&live, start, end, &running) else {
                return Ok(());
            };
            if let Some(step) = self.reserve_step(&live, compaction) {
                return self.note_failure(self.compact_one(&step.compaction));
            }
        }
    }
}
