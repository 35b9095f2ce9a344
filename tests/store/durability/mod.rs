//! What survives crashes, power cuts and failed writes.

mod checkpoint;
mod full_disk;
mod i4_crash;
mod i4_directories;
mod i4_lost_logs;
mod i5_failed_writes;
mod sim_fs;
