//! The functions that a probe calls.

use crate::kind::FilterKind;
use crate::line::Line;
use crate::parity::ProbeHash;
use crate::verdict::Verdict;

/// The functions for one kind of filter on one instruction set, chosen once so that a probe branches on
/// neither. The parity functions read the levels from the kind.
///
/// # Safety
/// The CPU has the instruction set that the functions are compiled for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeFns {
    /// Whether the first line of a hash alone shows that the hash was not added. `fraction` is the low word
    /// of hash × lines.
    pub denies: unsafe fn(line: &Line, hash: &ProbeHash, fraction: u64) -> bool,
    /// Whether a hash may have been added.
    pub one: unsafe fn(lines: &[Line], hash: u64, kind: &FilterKind) -> bool,
    /// The same for many hashes. `verdicts` is as long as `hashes`, and every verdict is [`Verdict::Maybe`]
    /// before the call.
    pub many: unsafe fn(lines: &[Line], hashes: &[u64], kind: &FilterKind, verdicts: &mut [Verdict]),
}
