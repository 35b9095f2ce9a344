//! What `BF.INFO` and `CF.INFO` say of a guard.
//!
//! It grows with its keys, so its capacity is their number, and its expansion rate is null, as for a Redis
//! filter that does not scale. Client libraries expect every field, so those without a meaning for a guard
//! are null.

use sidebloom::guard::GuardStats;

/// One field of `BF.INFO`: its name in requests, its name in replies, and its number, if it has one.
pub type BloomField = (&'static str, &'static str, Option<u64>);
/// One field of `CF.INFO`: its name, and its number, if it has one.
pub type CuckooField = (&'static str, Option<u64>);

fn bytes(stats: &GuardStats) -> u64 {
    stats.filter_bytes + stats.memtable_bytes
}

/// The filters of the segments and of the latest changes.
fn filters(stats: &GuardStats) -> u64 {
    stats.filters + 1
}

pub fn bloom_fields(stats: &GuardStats) -> [BloomField; 5] {
    [
        ("CAPACITY", "Capacity", Some(stats.keys)),
        ("SIZE", "Size", Some(bytes(stats))),
        ("FILTERS", "Number of filters", Some(filters(stats))),
        ("ITEMS", "Number of items inserted", Some(stats.keys)),
        ("EXPANSION", "Expansion rate", None),
    ]
}

pub fn cuckoo_fields(stats: &GuardStats) -> [CuckooField; 8] {
    [
        ("Size", Some(bytes(stats))),
        ("Number of buckets", None),
        ("Number of filters", Some(filters(stats))),
        ("Number of items inserted", Some(stats.rows)),
        ("Number of items deleted", None),
        ("Bucket size", None),
        ("Expansion rate", None),
        ("Max iterations", None),
    ]
}
