//! Progress of a copy, and limits on its memory.

/// Progress of a copy.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Rows.
    pub rows: u64,
    /// Bytes in their keys and values.
    pub bytes: u64,
}

impl Copied {
    /// Counts a row.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
    }

    /// Whether the rows since `sent` make a batch: about 1 MiB, or enough rows for their overhead to count.
    pub(super) fn fills_a_batch(&self, sent: &Copied) -> bool {
        self.bytes - sent.bytes >= BATCH_BYTES || self.rows - sent.rows >= BATCH_ROWS
    }
}

/// Bytes of keys and values in a batch.
const BATCH_BYTES: u64 = 1 << 20;
/// Maximum rows in a batch, however small they are.
const BATCH_ROWS: u64 = 8 << 10;
/// Maximum number of batches waiting for the slower side.
pub(super) const BATCHES: usize = 2;
