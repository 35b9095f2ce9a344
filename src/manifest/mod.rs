//! The manifest: the list of a store's segments, kept as a log of edits.

mod edit;
mod format;
mod log;
mod place;
mod reader;
mod tail;
#[cfg(test)]
mod tests;

pub(crate) use edit::overlap;
pub use edit::{Edit, LogMark, ManifestState, SegmentMeta};
#[cfg(fuzzing)]
pub use format::WRITES;
pub use format::{HEADS_SINCE, check_edit};
pub use log::{MANIFEST_TMP, Manifest, check_levels, encode_snapshot, overlapping_levels};
pub use place::{LEVELS, Place, Quarantine};
pub use reader::{MANIFEST, read_state};
pub use tail::ManifestTail;
