//! The live set: the segments of one moment, by level, and in runs with their fences for lookups.

mod level0;
mod level_counts;
mod ranged_runs;
mod run_groups;
mod runs;
mod segment;
mod segments;
mod set;

pub use level_counts::LevelCounts;
pub use level0::{BUCKET_RUNS_MAX, Level0Keyspace, reaches_into};
pub use ranged_runs::RangedRuns;
pub use run_groups::RunGroups;
pub use runs::{Fenced, GROUP_RUNS_MAX, Run, RunGroup, Sought};
pub use segment::{LiveSegment, hull};
pub use segments::{Level, Piece, Segments};
pub use set::LiveSet;
