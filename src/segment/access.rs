//! How a segment is walked: direction, and use of the block cache.

/// Which way a cursor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Reverse,
}

/// How a cursor reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Block by block through the block cache, which keeps them.
    Cached,
    /// In reads that grow from one block to 256 KiB. Takes data blocks from the cache, never puts any into it.
    Scan,
}
