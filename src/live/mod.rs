//! The live set: the segments of one moment, by level, and in runs with their fences for lookups.

mod fences;
mod level_counts;
mod piece;
mod ranged_runs;
mod runs;
mod segment;
mod segments;
mod set;

pub use fences::Fenced;
pub use level_counts::LevelCounts;
pub use piece::Piece;
pub use ranged_runs::RangedRuns;
pub use runs::{GROUP_RUNS_MAX, Run, RunGroup};
pub use segment::{LiveSegment, hull};
pub use segments::{Level, Segments};
pub use set::LiveSet;
