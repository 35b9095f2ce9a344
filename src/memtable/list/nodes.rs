//! Nodes by their numbers, in pieces of memory that never move.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Nodes in a piece: 5 KiB for those of a memtable.
const PIECE: usize = 64;

/// Nodes, numbered from 0. A large piece, or one that doubles, would be cleared at once when it is begun.
pub(super) struct Nodes<N> {
    pieces: boxcar::Vec<Box<[OnceLock<N>]>>,
    len: AtomicU32,
}

impl<N> Nodes<N> {
    pub fn new() -> Self {
        Nodes { pieces: boxcar::Vec::new(), len: AtomicU32::new(0) }
    }

    /// Adds a node, and returns its number. Only one thread at a time may call it.
    pub fn push(&self, node: N) -> u32 {
        let number = self.len.load(Relaxed);
        if self.slot(number).is_none() {
            self.pieces.push((0..PIECE).map(|_| OnceLock::new()).collect());
        }
        let _ = self.slot(number).map(|slot| slot.set(node)); // Nobody else has set it.
        self.len.store(number + 1, Release);
        number
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<&OnceLock<N>> {
        self.pieces.get(number as usize / PIECE)?.get(number as usize % PIECE)
    }

    /// The node of a number.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&N> {
        self.slot(number)?.get()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len.load(Acquire) as usize
    }
}
