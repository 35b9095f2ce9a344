//! The manifest: the list of a store's segments, kept as a log of edits. Also the live set built from it.

mod edit;
mod format;
mod level;
mod level_counts;
mod live;
mod live_segment;
mod log;
mod ranged;
mod reader;
mod run;
mod segments;
#[cfg(test)]
mod tests;

pub use edit::{Edit, LogMark, ManifestState, SegmentMeta};
#[cfg(fuzzing)]
pub use format::VERSION;
pub use level::{LEVELS, Quarantine};
pub use level_counts::LevelCounts;
pub use live::LiveSet;
pub use live_segment::{LiveSegment, hull};
pub use log::{MANIFEST_TMP, Manifest, check_levels, encode_snapshot};
pub use ranged::RangedRuns;
pub use reader::{MANIFEST, read_state};
pub use run::{Fenced, GROUP_RUNS_MAX, Run, RunGroup};
