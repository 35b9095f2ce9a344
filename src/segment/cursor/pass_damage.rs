//! Continues past what cannot be read.

use super::SegmentCursor;
use super::steps::Stop;
use super::steps::beyond;
use crate::error::{Error, Result};
use crate::segment::damaged_blocks::DamagedBlocks;

impl SegmentCursor {
    /// After an error, makes the next [`advance`](Self::advance) continue past what cannot be read. Returns
    /// that, or the error if it is not about a block.
    pub fn pass_damage(&mut self, error: Error) -> Result<DamagedBlocks> {
        let Some(Stop { partition, block }) = self.stop.take() else { return Err(error) };
        let top = &self.segment.top;
        self.partitions = beyond(self.direction, partition, top.len());
        let block = block.and_then(|at| Some((self.partition.as_deref()?, at)));
        if let Some((index, at)) = block {
            self.blocks = beyond(self.direction, at, index.len());
        }
        let (index, at) = block.unwrap_or((top, partition));
        let before = at.checked_sub(1).map(|before| index.separator(before));
        let after = before.or_else(|| partition.checked_sub(1).map(|before| top.separator(before)));
        Ok(DamagedBlocks {
            error,
            offset: index.handle(at).offset,
            blocks: block.map(|_| 1),
            after: after.map(<[u8]>::to_vec),
            up_to: index.separator(at).to_vec(),
        })
    }
}
