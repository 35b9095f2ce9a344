//! Probing a filter block in place.

use crate::block;
use sidebloom_filter::{FilterKind, Levels, Width};
use sidebloom_filter::{KeyHasher, Line, Prober, Verdict};

/// A filter in a block, or none: then every key may be in the file.
#[derive(Clone, Copy)]
pub struct Reader<'b> {
    lines: &'b [Line],
    prober: Prober,
    hasher: KeyHasher,
}

/// How many keys are hashed, and their lines prefetched, before the first is probed.
const BATCH: usize = 32;

impl<'b> Reader<'b> {
    /// Reads a block. A damaged or foreign one has no filter.
    pub fn of(block: &'b [u8]) -> Self {
        // Without lines, every answer is "maybe".
        let none = FilterKind::Parity { width: Width::Eight, levels: Levels::default() };
        let (kind, seed, lines) =
            block::read(block).map_or((none, 0, &[][..]), |block| (block.kind, block.seed, block.lines));
        Reader { lines, prober: Prober::new(kind), hasher: seed.into() }
    }

    /// Whether the block has a filter.
    pub fn has_filter(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Probes for the hash of a key.
    pub fn probe(&self, hash: u64) -> Verdict {
        self.prober.probe(self.lines, hash)
    }

    /// Whether the file may have a key or a prefix.
    pub fn may_match(&self, key: &[u8]) -> bool {
        self.probe(self.hasher.hash(key)) == Verdict::Maybe
    }

    /// The same for many keys. Their lines are prefetched before the first is read.
    pub fn may_match_many<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>, may_match: &mut [bool]) {
        let mut hashes = [0; BATCH];
        for answers in may_match.chunks_mut(BATCH) {
            let hashes = &mut hashes[..answers.len()];
            for (hash, key) in hashes.iter_mut().zip(&mut keys) {
                *hash = self.hasher.hash(key);
                self.prober.prefetch_unaligned(self.lines, *hash);
            }
            for (answer, &hash) in answers.iter_mut().zip(hashes.iter()) {
                *answer = self.probe(hash) == Verdict::Maybe;
            }
        }
    }
}
