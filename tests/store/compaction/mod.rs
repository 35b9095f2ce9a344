//! Compaction: which runs and levels remain, and what the work costs.

mod i10_levels;
mod level_shape;
mod manual;
mod short_openings;
mod tombstone_streaks;
