//! What a keyspace has on disk.

use super::keyspace::Keyspace;
use super::stats::expected_fpr;
use crate::engine::filters::plans::segments_of;
use crate::error::Result;
use crate::live::{LiveSegment, reaches_into};
use crate::sidecar::Facts;
use std::time::SystemTime;

/// What a keyspace has on disk now.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Segments that have only its keys. The figures below are theirs.
    pub segments: usize,
    /// Other segments that may have keys of it: small keyspaces share segments.
    pub shared_segments: usize,
    /// Entries, tombstones included.
    pub keys: u64,
    /// Tombstones of keys.
    pub tombstones: u64,
    /// Ranges whose older entries are deleted.
    pub range_tombstones: u64,
    /// Entries that expire, or have expired.
    pub expiring: u64,
    /// About how many of these have expired.
    pub expired: u64,
    /// When about a quarter more of a segment's entries will have expired, or its first or last one; `None`
    /// if nothing expires.
    pub next_expiry: Option<SystemTime>,
    /// Total length of the segment files, in bytes.
    pub data_bytes: u64,
    /// Segments with a usable filter.
    pub filters: usize,
    /// Total size of these filters, in bytes.
    pub filter_bytes: u64,
    /// Mean of the filters' expected false-positive rates, by keys; 1 for a segment without one. 0 without
    /// keys.
    pub expected_fpr: f64,
}

impl Keyspace {
    /// What the keyspace has on disk, memtables excluded. Counters are those of the whole store:
    /// [`Db::stats`](crate::Db::stats).
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`](crate::Error::KeyspaceDropped).
    pub fn stats(&self) -> Result<KeyspaceStats> {
        self.check()?;
        let (live, now) = (self.engine().shared.live(), self.reader().storage().clock.moment());
        let mut stats = KeyspaceStats::default();
        let mut false_positives = 0.0;
        for segment in segments_of(&live, self.space) {
            let facts = segment.verified_facts();
            stats.segments += 1;
            stats.keys += segment.meta.entries;
            stats.tombstones += segment.meta.tombstones;
            stats.range_tombstones += segment.meta.ranges;
            stats.expiring += segment.meta.expiries.count;
            stats.expired += segment.meta.expiries.expired_at(now);
            stats.next_expiry =
                stats.next_expiry.into_iter().chain(segment.meta.expiries.next_after(now)).min();
            stats.data_bytes += segment.meta.file_bytes;
            stats.filters += usize::from(facts.is_some());
            stats.filter_bytes += facts.map_or(0, Facts::filter_bytes);
            false_positives += expected_fpr(segment) * segment.meta.entries as f64;
        }
        let is_shared = |s: &&LiveSegment| s.meta.owner().is_none() && reaches_into(s, self.space);
        stats.shared_segments = live.segments().filter(is_shared).count();
        stats.expected_fpr = if stats.keys == 0 { 0.0 } else { false_positives / stats.keys as f64 };
        Ok(stats)
    }
}
