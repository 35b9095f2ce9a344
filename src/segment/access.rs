//! How a walk uses the block cache.

/// How a cursor uses the block cache. Both read from the file in reads that grow from one block to 256 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For a user's ranges. The cache keeps the first 256 KiB of a walk, which may span several segments.
    /// Beyond that, it keeps blocks only while it has room, so a long walk evicts nothing.
    Range,
    /// [`Range`](Access::Range) without its values.
    Keys,
    /// For maintenance, which reads each block once. Uses blocks in the cache but adds none.
    Scan,
}

impl Access {
    /// Whether a user asked, so that the block may be needed again.
    pub fn is_range(self) -> bool {
        self != Access::Scan
    }
}
