//! The live set: the segments of one moment, by level, and in runs with their fences for lookups.

mod ranged_runs;
mod runs;
mod segment;
mod segments;
mod set;

pub use ranged_runs::RangedRuns;
pub use runs::{Fenced, GROUP_RUNS_MAX, LevelCounts, Run, RunGroup};
pub use segment::{LiveSegment, hull};
pub use segments::{Level, Piece, Segments};
pub use set::LiveSet;
