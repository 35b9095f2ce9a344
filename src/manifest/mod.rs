//! The manifest: the list of a store's segments, kept as a log of edits. Also the live set built from it.

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
