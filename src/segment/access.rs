//! How a segment is walked: direction, and use of the block cache.

/// The direction of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Towards larger keys.
    Forward,
    /// Towards smaller keys.
    Reverse,
}

/// How a cursor reads blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// One block at a time, through the block cache, which keeps it.
    Cached,
    /// In reads that grow from one block to 256 KiB. Uses blocks in the cache but adds none.
    Scan,
}
