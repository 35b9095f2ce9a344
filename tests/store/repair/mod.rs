//! Repair: everything readable comes back, and no file is removed.

mod bad_sectors;
mod crash;
mod lost_files;
mod segments;
