//! Keyspaces: several sets of keys in one store, each with options of its own.
//!
//! A keyspace is a range of stored keys (`key/space.rs`), so the log, memtables, segments, snapshots, copies
//! and repairs need not know of it. What it adds:
//! 1. The catalog: rows of a keyspace of their own that hold the names, numbers and options (`catalog.rs`).
//! 2. The keyspaces in memory, for whoever writes segments and filters (`registry.rs`).
//! 3. Creating, changing and dropping (`manage.rs`), one at a time. Each is one batch.
//! 4. What to do if rows of the catalog are lost (`lost_rows.rs`).
//!
//! Dropping deletes the row of the name, and the range of all keys, in one synced batch. Then the segments
//! that only have such keys are removed unread, in one edit of the manifest. A batch that names a dropped
//! keyspace is refused by whoever commits it, who holds the log. So none of its rows follow the deletion.

pub(crate) mod catalog;
mod lost_rows;
pub(crate) mod manage;
pub(crate) mod read_catalog;
pub(crate) mod registry;
