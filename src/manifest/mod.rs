//! The manifest: the list of a store's segments, kept as a log of edits. Also the live set built from it.

mod edit;
mod fenced;
mod format;
mod level;
mod level_counts;
mod live;
mod live_segment;
mod log;
mod piece;
mod ranged;
mod reader;
mod run;
mod segments;
mod tail;
#[cfg(test)]
mod tests;

pub use edit::{Edit, LogMark, ManifestState, SegmentMeta};
pub use fenced::Fenced;
#[cfg(fuzzing)]
pub use format::VERSION;
pub use format::check_edit;
pub use level::{LEVELS, Quarantine};
pub use level_counts::LevelCounts;
pub use live::LiveSet;
pub use live_segment::{LiveSegment, hull};
pub use log::{MANIFEST_TMP, Manifest, check_levels, encode_snapshot, overlapping_levels};
pub use piece::Piece;
pub use ranged::RangedRuns;
pub use reader::{MANIFEST, read_state};
pub use run::{GROUP_RUNS_MAX, Run, RunGroup};
pub use segments::{Level, Segments};
pub use tail::ManifestTail;
