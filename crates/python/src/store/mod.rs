//! `Store` and what belongs to it: keyspaces, snapshots, batches, transactions and walks.

mod batch;
mod bounds;
mod expiry;
mod gather;
mod handle;
mod keyspace;
mod keyspace_rows;
mod keyspace_scopes;
mod keyspace_transaction;
mod many;
mod mapping;
mod options;
mod readable;
mod rows;
mod snapshot;
mod stats;
mod store_class;
mod text;
mod transaction;
mod views;
mod work;

pub use batch::Batch;
pub use expiry::expiry;
pub use keyspace::Keyspace;
pub use keyspace_transaction::KeyspaceTransaction;
pub use options::{durability, filter_policy};
pub use rows::Rows;
pub use snapshot::Snapshot;
pub use store_class::Store;
pub use transaction::Transaction;
pub use views::{Items, Keys, Values};
