//! How durations, times and codes of the statistics serialise: as numbers in base units, and as names.

use crate::engine::latency::{Latencies, LatencyHistogram};
use crate::event::WriteStall;
use crate::hash::KeyHash;
use crate::options::Durability;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};
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

/// The name of a durability.
pub(super) fn durability<S: Serializer>(durability: &Durability, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(durability.name())
}

/// The name of a hash function.
pub(super) fn key_hash<S: Serializer>(hash: &KeyHash, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(hash.name())
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.by_name().try_for_each(|(name, histogram)| map.serialize_entry(name, histogram))?;
        map.end()
    }
}

/// The number of calls, their time and some quantiles; these are null without calls.
impl Serialize for LatencyHistogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let quantile = |share| self.quantile(share).map(|time| time.as_secs_f64());
        let mut fields = to.serialize_struct("LatencyHistogram", 6)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("sum_seconds", &self.sum().as_secs_f64())?;
        fields.serialize_field("p50_seconds", &quantile(0.5))?;
        fields.serialize_field("p90_seconds", &quantile(0.9))?;
        fields.serialize_field("p99_seconds", &quantile(0.99))?;
        fields.serialize_field("p999_seconds", &quantile(0.999))?;
        fields.end()
    }
}
