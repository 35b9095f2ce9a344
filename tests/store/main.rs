//! Tests of the store through its public interface, in one binary: each binary links everything anew.
//! `cargo test --test store i4_crash` runs one module.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "../support/mod.rs"]
mod support;

mod checkpoint;
mod concurrent;
mod cursor;
mod deleted_runs;
mod everything;
mod first_write;
mod follow;
mod follow_passes;
mod follow_versions;
mod full_disk;
mod i10_levels;
mod i13_lock;
mod i13_own_files;
mod i2_sidecars;
mod i3_rebuild_filters;
mod i4_crash;
mod i4_directories;
mod i4_group_commit;
mod i4_lost_logs;
mod i5_failed_writes;
mod i5_read_faults;
mod i6_damage;
mod i7_readers_never_wait;
mod i9_tombstones;
mod ingest;
mod ingest_beside;
mod ingest_numbers;
mod ingest_unsorted;
#[cfg(target_os = "linux")]
mod irregular_files;
mod key_hash;
mod level_shape;
mod limits;
mod manual_compaction;
mod mapped_filters;
mod meanwhile;
mod model;
mod modes;
mod no_reader_locks;
mod open_files;
mod panics;
mod prefixes;
mod quarantine;
mod range_tombstone_bugs;
mod range_tombstones;
mod ranges;
mod reads_ahead;
mod repair;
mod repair_bad_sectors;
mod repair_crash;
mod repair_segments;
mod short_openings;
mod sim_fs;
mod skip_damaged;
mod snapshots;
mod take_back;
mod verify;
mod versions;
mod walks;
