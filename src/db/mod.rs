//! The store: [`Db`] and the types of its methods. `handle.rs` has the public methods. From there, a get continues in `read.rs` and a put in
//! `write.rs`, `flush.rs` and `compact.rs`.

mod background;
#[cfg(feature = "bench-support")]
mod bench_support;
mod checkpoint;
mod close;
mod compact;
mod compaction;
mod control;
mod cursor;
mod doubts;
mod failure;
mod file_set;
mod filters;
mod flush;
mod follow;
mod followed_filters;
mod followed_logs;
mod following;
mod handle;
mod id_queue;
mod ingest;
mod inner;
mod log;
mod lookup;
mod manual;
mod mask;
mod merge_costs;
mod metrics;
mod names;
mod open;
mod options;
mod output;
mod pick;
mod place;
mod plan;
mod policy;
mod prefixes;
mod publish;
mod quarantine;
mod range;
mod read;
mod recent;
mod recover;
mod repair;
mod replay;
mod reserve;
mod resume;
mod retry;
mod retunes;
mod run_walk;
mod segment_builder;
mod sidecar_queue;
mod sidecars;
mod skipped;
mod snapshot;
mod start;
mod stats;
mod storage;
mod take_back;
mod unnumbered;
mod unsorted;
mod unwind;
mod verify;
mod versions;
mod view;
mod warm;
mod write;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod level_tests;
#[cfg(test)]
mod move_tests;

#[cfg(feature = "bench-support")]
pub use bench_support::SegmentFilter;
pub use cursor::Cursor;
pub use file_set::{FileSet, SegmentEntry};
pub use handle::Db;
pub(crate) use metrics::add;
pub(crate) use names::is_of_a_store;
pub use options::{Durability, Options};
pub use policy::FilterPolicy;
pub(crate) use policy::Objective;
pub use range::{Keys, Range};
pub use repair::{LogSalvage, LostRange, RepairReport, repair};
pub use sidecars::RebuildReport;
pub use skipped::{Skipped, SkippedKeys};
pub use snapshot::Snapshot;
pub use stats::{LevelStats, Stats, WriteStall};
pub use verify::VerifyReport;
