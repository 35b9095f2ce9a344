//! Reads: keys, ranges, cursors and snapshots, and what they wait for.

mod cursor;
mod i7_readers_never_wait;
mod long_skips;
mod merged_versions;
mod ranges;
mod reads_ahead;
mod snapshots;
mod versions;
mod walks;
