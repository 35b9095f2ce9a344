//! Filters and their sidecars: they change no answer, see every key, and can be rebuilt.

mod i2_sidecars;
mod i3_rebuild_filters;
mod i9_tombstones;
mod mapped_filters;
mod prefixes;
