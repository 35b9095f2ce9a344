//! How far a copy has come, and how much it holds in memory.

/// How far a copy has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Rows.
    pub rows: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

impl Copied {
    /// Counts a row.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        self.bytes += (key.len() + value.len()) as u64;
    }

    /// Whether the rows since `sent` make a batch: about 1 MiB of them, or so many that their overhead
    /// counts.
    pub(super) fn fills_a_batch(&self, sent: &Copied) -> bool {
        self.bytes - sent.bytes >= BATCH_BYTES || self.rows - sent.rows >= BATCH_ROWS
    }
}

/// The bytes of keys and values that make a batch.
const BATCH_BYTES: u64 = 1 << 20;
/// The rows that make a batch, however small they are.
const BATCH_ROWS: u64 = 8 << 10;
/// The most batches that wait for the slower side.
pub(super) const BATCHES: usize = 2;
