//! Loops of a caller over the first probes of several filters, compiled for each instruction set:
//! [`Isa::run`](crate::Isa::run).
//!
//! A call for each probe takes longer than the probe: its arguments, the constants and the registers saved
//! around it are a third of the instructions of a lookup. In a loop they are needed once. The loop treats the
//! widths from eight lanes on alike, by [`FirstLanes`](super::equation::FirstLanes); otherwise the compiler
//! would make code for each of them and prepare all their equations before the loop. It probes no other
//! filters: a single call in a loop, even if never made, costs all calls of the loop the saved registers.

use super::equation::ProbeHash;
use crate::line::Line;
use crate::prober::FirstProbe;

/// A loop that probes filters for one hash.
pub trait ProbeLoop {
    /// Its result.
    type Output;

    /// Runs it for a hash. Mark it `#[inline(always)]`, and what it calls, or it is not compiled for the
    /// instruction set.
    fn run<P: Probes>(self, probes: P, hash: u64) -> Self::Output;
}

/// The first probe of a filter on an instruction set.
pub trait Probes: Copy {
    /// A hash in vector registers.
    type Hash: Copy;

    /// Prepares a hash for probes of all filters.
    fn hash(self, hash: ProbeHash) -> Self::Hash;

    /// Whether the first line alone shows that the hash was not added. False for a filter without at least
    /// eight lanes: [`FirstProbe::denies`] asks any filter.
    fn denies(self, hash: &Self::Hash, first: &FirstProbe, lines: &[Line]) -> bool;
}
