//! Damaged and unreadable files: what reads say, which segments go to quarantine, and how they come back.

mod i5_read_faults;
mod i6_damage;
mod newer_codes;
mod quarantine;
mod skip_damaged;
mod take_back;
mod verify;
