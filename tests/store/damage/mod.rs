//! Damaged and unreadable files: what reads return, which segments are quarantined, and how they come back.

mod i5_read_faults;
mod i6_damage;
mod newer_codes;
mod quarantine;
mod skip_damaged;
mod take_back;
mod verify;
