//! The bytes of a log that a copy of a store has in place of the original's logs.

use super::format::{LogHeader, encode_record};
use crate::error::{Error, Result};
use crate::id::FileId;
use crate::key::Seq;

/// Encodes one log. Call protocol: `new push*`.
#[derive(Debug)]
pub struct LogEncoder {
    tag: u32,
    next_seq: Seq,
}

impl LogEncoder {
    /// Appends the header of a log whose first operation has sequence number `first_seq` or a later one.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`].
    pub fn new(buf: &mut Vec<u8>, id: FileId, store_id: u64, first_seq: Seq) -> Result<Self> {
        buf.extend_from_slice(&LogHeader { id, store_id, first_seq }.encode()?);
        Ok(LogEncoder { tag: LogHeader::tag(id, store_id), next_seq: first_seq })
    }

    /// Appends a batch of `count` operations, and a gap if it does not continue the last one.
    ///
    /// # Errors
    /// [`Error::NumbersExhausted`], [`Error::BatchTooLarge`]; [`Error::Internal`] for a batch out of order.
    pub fn push(&mut self, buf: &mut Vec<u8>, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        if first_seq < self.next_seq || count == 0 {
            let next = self.next_seq;
            return Err(Error::Internal(format!(
                "a batch of {count} operations at {first_seq} is to follow {next} in a copied log"
            )));
        }
        if first_seq > self.next_seq {
            encode_record(buf, self.tag, first_seq, 0, 0, &[])?;
        }
        encode_record(buf, self.tag, first_seq, count, 0, payload)?;
        self.next_seq = first_seq.saturating_add(count.into());
        Ok(())
    }

    /// The sequence number after the last operation.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }
}
