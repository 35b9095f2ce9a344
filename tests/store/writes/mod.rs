//! Writes: group commits, conditions, range deletions, and the first write after an opening.

mod conditional;
mod first_write;
mod i4_group_commit;
mod range_tombstone_bugs;
mod range_tombstones;
