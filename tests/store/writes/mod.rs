//! Writes: group commits, conditions, transactions, range deletions, and the first write after an opening.

mod conditional;
mod conflicts;
mod first_write;
mod i4_group_commit;
mod racing_conditions;
mod racing_transactions;
mod range_tombstone_bugs;
mod range_tombstones;
mod transactions;
