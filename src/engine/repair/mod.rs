//! Repair: makes a store with a lost manifest, lost segments or damaged files openable again, with everything
//! that is readable.
//!
//! 1. Every block of every segment is read. The readable rows of a damaged segment go into a new segment of
//!    the same level. The old one is set aside once the manifest no longer names it.
//! 2. A readable manifest is kept. If the segments of a sorted level overlap, all segments get new levels. A
//!    manifest has lost its last edits, and counts as unreadable, if it names missing files, or if it ends
//!    before the logs begin and a segment that it does not name has newer operations.
//! 3. Without a manifest, the ages of the segments give their levels (see `levels.rs`). Segments that overlap
//!    nothing go below all others, so that most stores can be written at once. Segments that overlap and
//!    whose ages interleave go to level 0, as do those that the logs repeat. There, reads and compactions
//!    compare the sequence numbers of the entries, until the next compaction sorts level 0 out. Obsolete
//!    segments that a reader still held have another name (`FileKind::Obsolete`) and are left out: compaction
//!    has dropped tombstones that hide their rows.
//! 4. The logs stay, and the next open replays them. If that would fail, every readable batch is written to a
//!    new log (see `logs.rs`). Without a manifest, the first log says where the logs begin, in its header or
//!    its first record. If both are damaged, it holds everything that no segment has. If nothing else
//!    identifies the store, the tag of the logs' records does. The new manifest comes after the logs: without
//!    one, they are read to their end, as nothing says what was synced.
//! 5. If the sequence numbers are near their end, all rows are renumbered (`renumber.rs`).
//! 6. If something was lost, keyspaces that have rows and no name get one (`keyspaces.rs`).
//! 7. A file is set aside by renaming it to `*.damaged`, never removed, and only once its replacement is
//!    complete and durable. So after a crash, a repair can start again without loss.

mod keyspaces;
mod levels;
mod logs;
mod lost_manifest;
#[cfg(test)]
mod outcome_tests;
mod renumber;
mod report;
mod segments;
mod steps;
mod workspace;

pub use report::{LogSalvage, LostRange, RepairReport};
pub use steps::{repair, repair_with};
