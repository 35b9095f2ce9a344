//! The live set: the segments of one moment, by level, and in runs with their fences for lookups.

mod counts;
mod fences;
mod piece;
mod ranged;
mod runs;
mod segment;
mod segments;
mod set;

pub use counts::LevelCounts;
pub use fences::Fenced;
pub use piece::Piece;
pub use ranged::RangedRuns;
pub use runs::{GROUP_RUNS_MAX, Run, RunGroup};
pub use segment::{LiveSegment, hull};
pub use segments::{Level, Segments};
pub use set::LiveSet;
