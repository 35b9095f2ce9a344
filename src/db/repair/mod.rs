//! Repair: a store whose manifest is lost, or names segments that are lost, becomes openable again with all that is readable.
//!
//! 1. Every block of every segment is read. Of a damaged segment, the rows around the damage are written to a new segment of the same
//!    level; the old one is set aside once the manifest does without it.
//! 2. A readable manifest is kept; if the segments of a sorted level overlap, all go to level 0. One that names files which are not
//!    there, or that ends before the logs begin, has lost its last edits, and with them the names of segments: it counts as unreadable.
//! 3. Without one, every segment goes to level 0. Their ages may interleave, so each entry's own sequence number decides:
//!    reads and compaction compare them, and the next compaction sorts level 0 out. Obsolete segments that a reader still held have another
//!    name (`FileKind::Obsolete`): compaction has dropped tombstones that would hide their rows, so they stay out.
//! 4. Logs stay: the next opening replays them. If that would fail, all batches that are readable are written anew (see `logs`).
//! 5. What is set aside is renamed to `*.damaged`, never removed, and what replaces a file is complete and durable before: a repair
//!    that a crash interrupts can start again without loss.

mod gather;
mod logs;
mod report;
mod run;
mod segments;
mod workspace;

pub use report::{LogSalvage, LostRange, RepairReport};
pub use run::repair;
