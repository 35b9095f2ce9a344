//! How durations, times and codes of the statistics serialise: as numbers in base units, and as names.

use crate::engine::metrics::WriteStall;
use crate::hash::KeyHash;
use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A duration in seconds.
pub(super) fn seconds<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(to)
}

/// A time in seconds since 1970, without leap seconds; 0 for times before.
pub(super) fn unix_seconds<S: Serializer>(time: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()).serialize(to)
}

/// The name of what writers wait for.
pub(super) fn write_stall<S: Serializer>(stall: &Option<WriteStall>, to: S) -> Result<S::Ok, S::Error> {
    stall.map(WriteStall::name).serialize(to)
}

/// The name of a hash function.
pub(super) fn key_hash<S: Serializer>(hash: &KeyHash, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(hash.name())
}
