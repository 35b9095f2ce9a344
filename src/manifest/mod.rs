//! The manifest: which segments make up the store, as a log of edits and the state they add up to.

mod edit;
mod format;
mod level;
mod live;
mod log;
#[cfg(test)]
mod tests;

pub use edit::{Edit, LogMark, ManifestState, SegmentMeta};
pub use level::{LEVELS, Quarantine};
pub use live::{LiveSegment, LiveSet, hull};
pub use log::{MANIFEST, MANIFEST_TMP, Manifest, check_levels, read_state};
