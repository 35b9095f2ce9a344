//! The public API: [`Db`] and the types that its methods return.

mod across_keyspaces;
#[cfg(feature = "bench-support")]
mod bench_support;
mod conditional;
mod cursor;
mod expiring;
mod handle;
mod ingest;
mod keys;
mod keyspace;
mod keyspace_stats;
mod keyspace_transaction;
mod maintenance;
mod open;
mod prometheus;
mod range;
#[cfg(feature = "serde")]
mod serialize;
mod snapshot;
mod stats;
mod transaction;
mod transaction_walks;
mod unwind;

#[cfg(feature = "bench-support")]
pub use bench_support::SegmentFilter;
pub use conditional::CompareAndSet;
pub use cursor::Cursor;
pub use expiring::TimeToLive;
pub use handle::Db;
pub use keys::Keys;
pub use keyspace::Keyspace;
pub use keyspace_stats::KeyspaceStats;
pub use keyspace_transaction::KeyspaceTransaction;
pub use prometheus::Exposition;
pub use range::Range;
pub use snapshot::Snapshot;
pub use stats::{LevelStats, Stats};
pub use transaction::{Savepoint, Transacted, Transaction};
pub use transaction_walks::{TransactionCursor, TransactionRange};
