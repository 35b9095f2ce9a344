//! What a keyspace has on disk.

use super::handle::Db;
use super::keyspace::Keyspace;
use super::stats::expected_fpr;
use crate::engine::filters::plans::segments_of;
use crate::error::Result;
use crate::key::{Space, Time};
use crate::live::{LiveSegment, reaches_into};
use crate::sidecar::Facts;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::SystemTime;

/// What a keyspace has on disk now.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    #[cfg_attr(
        feature = "serde",
        serde(rename = "next_expiry_unix_seconds", serialize_with = "super::serialize::unix_seconds")
    )]
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
        let mut sums = Sums::default();
        segments_of(&live, self.space).for_each(|segment| sums.add(segment, now));
        let is_shared = |s: &&LiveSegment| s.meta.owner().is_none() && reaches_into(s, self.space);
        sums.stats.shared_segments = live.segments().filter(is_shared).count();
        Ok(sums.finish())
    }
}

impl Db {
    /// What each keyspace has on disk, by name; the default keyspace has the empty name. Looks at each
    /// segment once, however many keyspaces there are.
    pub fn keyspace_stats(&self) -> BTreeMap<String, KeyspaceStats> {
        let shared = &self.engine().shared;
        let (live, now) = (shared.live(), shared.storage.clock.moment());
        let mut names = shared.storage.keyspaces.names();
        names.push((Space::DEFAULT, String::new()));
        let mut sums: BTreeMap<Space, (String, Sums)> =
            names.into_iter().map(|(space, name)| (space, (name, Sums::default()))).collect();
        for segment in live.segments() {
            if let Some(owner) = segment.meta.owner() {
                sums.entry(owner).and_modify(|(_, sums)| sums.add(segment, now));
                continue;
            }
            let ends = [segment.meta.smallest.as_slice(), &*segment.meta.largest].map(Space::of);
            let from = ends[0].unwrap_or(Space::DEFAULT);
            let to = ends[1].map_or(Bound::Unbounded, Bound::Included);
            if ends[1].is_none_or(|to| from <= to) {
                sums.range_mut((Bound::Included(from), to)).for_each(|(_, (_, of))| {
                    of.stats.shared_segments += 1;
                });
            }
        }
        sums.into_values().map(|(name, sums)| (name, sums.finish())).collect()
    }
}

/// What the segments of a keyspace add up to.
#[derive(Default)]
struct Sums {
    stats: KeyspaceStats,
    /// Entries × expected false-positive rate.
    false_positives: f64,
}

impl Sums {
    fn add(&mut self, segment: &LiveSegment, now: Time) {
        let (stats, meta, facts) = (&mut self.stats, &segment.meta, segment.verified_facts());
        stats.segments += 1;
        stats.keys += meta.entries;
        stats.tombstones += meta.tombstones;
        stats.range_tombstones += meta.ranges;
        stats.expiring += meta.expiries.count;
        stats.expired += meta.expiries.expired_at(now);
        stats.next_expiry = stats.next_expiry.into_iter().chain(meta.expiries.next_after(now)).min();
        stats.data_bytes += meta.file_bytes;
        stats.filters += usize::from(facts.is_some());
        stats.filter_bytes += facts.map_or(0, Facts::filter_bytes);
        self.false_positives += expected_fpr(segment) * meta.entries as f64;
    }

    fn finish(self) -> KeyspaceStats {
        let keys = self.stats.keys;
        let expected_fpr = if keys == 0 { 0.0 } else { self.false_positives / keys as f64 };
        KeyspaceStats { expected_fpr, ..self.stats }
    }
}
