//! The store: [`Db`] and what it hands out. The read path is in `view.rs`, the write path in `write.rs`.

mod ask;
mod background;
mod build;
mod checkpoint;
mod compact;
mod core;
mod failure;
mod flush;
mod ingest;
mod logs;
mod manual;
mod metrics;
mod open;
mod options;
mod pick;
mod policy;
mod publish;
mod quarantine;
mod range;
mod recover;
mod repair;
mod reserve;
mod resume;
mod shards;
mod sidecars;
mod snapshot;
mod stats;
mod take_back;
mod verify;
mod view;
mod write;

#[cfg(test)]
mod level_tests;

pub(crate) use core::{lock, try_lock};
pub(crate) use metrics::add;
pub use open::Db;
pub use options::{Durability, Options};
pub use policy::FilterPolicy;
pub use range::Range;
pub use repair::{LogSalvage, LostRange, RepairReport, repair};
pub(crate) use shards::Shards;
pub use sidecars::RebuildReport;
pub use snapshot::Snapshot;
pub use stats::{LevelStats, Stats};
pub use verify::VerifyReport;
