//! The statistics of a store.

use crate::engine::Engine;
use crate::engine::latency::Latencies;
use crate::engine::read::counts::FilterAnswers;
use crate::event::WriteStall;
use crate::hash::KeyHash;
use crate::live::{LiveSegment, Segments};
use crate::options::Durability;
use crate::sidecar::{Facts, Residency};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// Counters since the store was opened, and its current state.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// Probes that sidecars answered, including quarantined segments', which belong to no level.
    pub filter_probes: u64,
    /// Probes answered "absent". Each one saved reading a segment.
    pub filter_negatives: u64,
    /// Probes answered "maybe" although the segment did not have the key.
    pub filter_false_positives: u64,
    /// Probes for a prefix of keys ([`Options::prefixes`](crate::Options::prefixes)) that sidecars answered.
    /// Not counted in `filter_probes`.
    pub prefix_probes: u64,
    /// Those answered "absent". Each one saved a walk from reading a segment.
    pub prefix_negatives: u64,
    /// Sidecars found missing or unusable; each is rebuilt in the background.
    pub filters_unavailable: u64,
    /// Segments in quarantine now. Part of each cannot be read; the rest still serves reads.
    /// [`Db::compact`](crate::Db::compact) and the background, after pauses of 1 s to 1 h, read them again
    /// and take them back once they are readable. `sidebloom repair` salvages the others.
    pub segments_quarantined: u64,
    /// Segments in a format of an earlier release. Compactions replace them, and
    /// [`Db::compact`](crate::Db::compact) replaces all of them. The next release may not read them.
    pub segments_of_earlier_formats: u64,
    /// Segment files open now, not counting those that only active readers still hold.
    pub segments_open: u64,
    /// Bytes of the segments among them whose blocks are read in place, in maps
    /// ([`Compression::None`](crate::Compression) and `Fsst`). As far as they are in memory, the system's
    /// page cache holds them; the block cache does not.
    pub segment_bytes_mapped: u64,
    /// Memory of the indexes of open segments that no lookup evicts, in bytes: the first of their two levels,
    /// and partitions of the second up to a quarter of
    /// [`block_cache_bytes`](crate::Options::block_cache_bytes). 0 in a forked process.
    pub index_bytes: u64,
    /// Memory of the block cache in use, in bytes, without the indexes and range tombstones that share its
    /// budget. 0 in a forked process.
    pub block_cache_bytes: u64,
    /// The size of the block cache now, in bytes: [`block_cache_bytes`](crate::Options::block_cache_bytes) as
    /// opened or as [changed](crate::Db::set_options).
    pub block_cache_capacity: u64,
    /// Memory of the filters with [`Residency::Pinned`](crate::Residency), in bytes. Otherwise 0: filters are
    /// mapped, and in the system's page cache as far as they are in memory.
    pub filter_bytes_pinned: u64,
    /// Filters mapped now, including those that only snapshots and active readers still hold.
    pub filters_mapped: u64,
    /// How often a segment file was opened for a read, a check or a compaction.
    pub segment_opens: u64,
    /// Blocks (data and index) read from files. A block that is read in place counts the first time, when its
    /// checksum is verified, not when the system has evicted its page and reads it again.
    pub block_reads: u64,
    /// Blocks found in the block cache, or read in place after the first time.
    pub block_cache_hits: u64,
    /// Bytes read from segments, except by compactions.
    pub bytes_read: u64,
    /// Bytes of keys and values written by the user, as encoded in batches.
    pub user_bytes: u64,
    /// Bytes appended to logs.
    pub log_bytes: u64,
    /// Bytes of segments written by flushes.
    pub flush_bytes: u64,
    /// Bytes of segments written by compactions.
    pub compaction_bytes: u64,
    /// Memtables that were flushed.
    pub flushes: u64,
    /// Compactions that have ended: merges, moves, removals of whole segments, and rewrites.
    pub compactions: u64,
    /// Compactions that run now, manual ones too.
    pub compactions_running: u64,
    /// Threads for flushing and compaction that there shall be now. While compactions run, there may be more.
    pub background_threads: u64,
    /// The most bytes that compactions read and write per second now; 0 if unlimited.
    pub compaction_bytes_per_second: u64,
    /// Time that compactions have waited for this limit, in microseconds, each counted by itself.
    pub compaction_throttled_micros: u64,
    /// When a write is acknowledged now that does not say so itself.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::durability"))]
    pub durability: Durability,
    /// Bytes of segments read by compactions.
    pub compaction_read_bytes: u64,
    /// Bytes of sidecars written.
    pub filter_bytes_written: u64,
    /// Filters written for segments that had none, an unusable one, or one for another policy.
    pub filters_rebuilt: u64,
    /// Failed attempts at background work, which is tried again after a pause.
    pub background_failures: u64,
    /// Attempts that failed for lack of file descriptors and were retried.
    pub descriptor_waits: u64,
    /// How often a writer has waited for a flush or a compaction.
    pub stalls: u64,
    /// Events that the [callback](crate::Options::on_event) was not told because too many waited for it.
    pub events_dropped: u64,
    /// Time by which writers were delayed or stalled, in microseconds.
    pub stall_micros: u64,
    /// What writers wait for now; `None` if they do not.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::write_stall"))]
    pub write_stall: Option<WriteStall>,
    /// Writes and background tasks that failed because the disk was full.
    pub shortages: u64,
    /// Whether the store takes no more writes after a failure
    /// ([`Error::Poisoned`](crate::Error::Poisoned)).
    pub has_failed: bool,
    /// Memory of the memtables, in bytes.
    pub memtable_bytes: u64,
    /// Full memtables that wait for a flush, or are in one.
    pub memtables_waiting: u64,
    /// How the store hashes its keys, chosen at its creation.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::serialize::key_hash"))]
    pub key_hash: KeyHash,
    /// In a store that [follows](crate::Options::follow) another process: everything written longer ago than
    /// this is visible.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "follower_age_seconds", serialize_with = "super::serialize::seconds")
    )]
    pub follower_age: Option<Duration>,
    /// How long operations took, if [`Options::latency_histograms`](crate::Options::latency_histograms) asks
    /// for that.
    pub latencies: Option<Latencies>,
    /// The levels, from 0 to the deepest in use. Quarantined segments belong to none.
    pub levels: Vec<LevelStats>,
}

impl Stats {
    /// Bytes written to logs, segments and sidecars per byte that the user wrote. 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        let written = self.log_bytes + self.flush_bytes + self.compaction_bytes + self.filter_bytes_written;
        if self.user_bytes == 0 { 0.0 } else { written as f64 / self.user_bytes as f64 }
    }

    /// The counters, by the names of their fields.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        macro_rules! by_name {
            ($($field:ident)*) => { [$((stringify!($field), self.$field)),*] };
        }
        #[rustfmt::skip]
        let counters = by_name! {
            filter_probes filter_negatives filter_false_positives prefix_probes prefix_negatives filters_unavailable
            segment_opens block_reads block_cache_hits bytes_read user_bytes log_bytes flush_bytes compaction_bytes
            compaction_read_bytes compaction_throttled_micros filter_bytes_written descriptor_waits stall_micros shortages
            flushes compactions filters_rebuilt background_failures stalls events_dropped
        };
        counters.into_iter()
    }

    /// The expected number of false positives in a lookup of a missing key within the range of every run: the
    /// sum over the runs.
    pub fn expected_false_positives(&self) -> f64 {
        self.levels.iter().map(|level| level.expected_fpr * level.runs as f64).sum()
    }
}

/// The statistics of one level.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LevelStats {
    /// Its number; 0 is the newest.
    pub level: usize,
    /// Sorted runs that a lookup may have to search: every segment of level 0 with keys of its keyspace (here
    /// the one with the most), one run of any other level.
    pub runs: usize,
    /// Segments.
    pub segments: usize,
    /// Entries, tombstones included.
    pub keys: u64,
    /// Tombstones of keys.
    pub tombstones: u64,
    /// Ranges of keys that range tombstones delete.
    pub range_tombstones: u64,
    /// Entries that expire, or have expired.
    pub expiring: u64,
    /// About how many of these have expired, by what the segments say without being read.
    pub expired: u64,
    /// When about a quarter more of a segment's entries will have expired, or its first or last one; `None`
    /// if nothing expires.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "next_expiry_unix_seconds", serialize_with = "super::serialize::unix_seconds")
    )]
    pub next_expiry: Option<SystemTime>,
    /// Bytes of the segment files.
    pub data_bytes: u64,
    /// Size of the filters, in bytes.
    pub filter_bytes: u64,
    /// Distinct prefixes in the filters, summed over the segments.
    pub filter_prefixes: u64,
    /// Segments with a verified filter.
    pub filters: usize,
    /// The kinds of its filters, each once, the highest expected false-positive rate first: "parity-8",
    /// "blocked-bloom-k6".
    pub filter_kinds: Vec<String>,
    /// The expected false-positive rate of its segments, weighted by keys. A segment without a verified
    /// filter counts as 1.
    pub expected_fpr: f64,
    /// Probes that its sidecars answered.
    pub filter_probes: u64,
    /// Probes answered "maybe" although the segment did not have the key.
    pub filter_false_positives: u64,
    /// Probes answered "absent".
    pub filter_negatives: u64,
}

impl LevelStats {
    /// The observed false-positive rate: wrong "maybe"s per probe of an absent key. `None` before the first.
    pub fn observed_fpr(&self) -> Option<f64> {
        let absent = self.filter_negatives + self.filter_false_positives;
        (absent > 0).then(|| self.filter_false_positives as f64 / absent as f64)
    }
}

/// What a segment's filter lets through; everything if it is missing or not verified.
pub(super) fn expected_fpr(segment: &LiveSegment) -> f64 {
    segment.sidecar.as_ref().and_then(|s| s.verified_facts()).map_or(1.0, Facts::expected_fpr)
}

/// What the usable filters of some segments report. Opens those that were not needed so far.
fn facts(segments: &Segments) -> impl Iterator<Item = &Facts> {
    segments.iter().filter_map(|s| s.sidecar.as_ref()?.facts().ok())
}

/// The kinds in use, highest expected false-positive rate first.
fn filter_kinds(segments: &Segments) -> Vec<String> {
    let mut kinds: Vec<(String, f64)> = Vec::new();
    for filter in facts(segments) {
        let name = filter.kind().name();
        if kinds.iter().all(|(known, _)| *known != name) {
            kinds.push((name, filter.expected_fpr()));
        }
    }
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    kinds.into_iter().map(|(name, _)| name).collect()
}

impl Stats {
    /// The current statistics of a store.
    pub(crate) fn of(engine: &Engine) -> Stats {
        let (view, storage) = (engine.shared.current_view(), &engine.shared.storage);
        let (metrics, now) = (&storage.metrics, storage.clock.moment());
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        let FilterAnswers { probes, negatives, false_positives } =
            metrics.shown_answers.next(&metrics.filters);
        let levels = view.live.levels().iter().take(view.live.deepest() + 1).enumerate();
        let levels: Vec<LevelStats> = levels
            .map(|(number, level)| {
                let segments = level.segments();
                let keys = level.entries();
                let weighted: f64 = segments.iter().map(|s| expected_fpr(s) * s.meta.entries as f64).sum();
                LevelStats {
                    level: number,
                    runs: if number == 0 { view.live.level0_runs() } else { segments.len().min(1) },
                    segments: segments.len(),
                    keys,
                    tombstones: segments.iter().map(|s| s.meta.tombstones).sum(),
                    range_tombstones: segments.iter().map(|s| s.meta.ranges).sum(),
                    expiring: segments.iter().map(|s| s.meta.expiries.count).sum(),
                    expired: segments.iter().map(|s| s.meta.expiries.expired_at(now)).sum(),
                    next_expiry: segments.iter().filter_map(|s| s.meta.expiries.next_after(now)).min(),
                    data_bytes: level.file_bytes(),
                    filter_bytes: facts(segments).map(Facts::filter_bytes).fold(0, u64::saturating_add),
                    filter_prefixes: facts(segments).map(Facts::prefix_members).fold(0, u64::saturating_add),
                    filters: segments.iter().flat_map(|s| &s.sidecar).filter(|s| s.is_verified()).count(),
                    filter_kinds: filter_kinds(segments),
                    expected_fpr: if keys == 0 { 0.0 } else { weighted / keys as f64 },
                    filter_probes: probes[number],
                    filter_negatives: negatives[number],
                    filter_false_positives: false_positives[number],
                }
            })
            .collect();
        let (prefix_probes, prefix_negatives) =
            storage.prefixes.as_ref().map_or((0, 0), |prefixes| prefixes.counts());
        let reads = storage.files.counters().sum();
        Stats {
            filter_probes: probes.iter().sum(),
            filter_negatives: negatives.iter().sum(),
            filter_false_positives: false_positives.iter().sum(),
            prefix_probes,
            prefix_negatives,
            filters_unavailable: get(&metrics.filters_unavailable),
            segments_quarantined: view.live.quarantined().len() as u64,
            segments_of_earlier_formats: view
                .live
                .segments()
                .filter(|s| s.meta.is_of_earlier_format())
                .count() as u64,
            segments_open: storage.files.open_now() as u64,
            segment_bytes_mapped: storage.files.mapped_bytes(),
            index_bytes: storage.files.index_bytes(),
            block_cache_bytes: storage.files.cached_bytes(),
            block_cache_capacity: storage.files.cache_capacity(),
            filter_bytes_pinned: match storage.options.residency {
                Residency::Pinned => levels.iter().map(|level| level.filter_bytes).sum(),
                Residency::Mapped => 0,
            },
            filters_mapped: storage.maps.mapped() as u64,
            segment_opens: storage.files.openings(),
            block_reads: reads.blocks,
            block_cache_hits: reads.cache_hits,
            bytes_read: reads.bytes,
            user_bytes: get(&metrics.user_bytes),
            log_bytes: get(&metrics.log_bytes),
            flush_bytes: get(&metrics.flush_bytes),
            compaction_bytes: get(&metrics.compaction_bytes),
            flushes: get(&metrics.flushes),
            compactions: get(&metrics.compactions),
            compactions_running: get(&metrics.compactions_running),
            background_threads: storage.in_force.background_threads() as u64,
            compaction_bytes_per_second: storage.in_force.compaction_rate(),
            compaction_throttled_micros: get(&metrics.compaction_throttled_micros),
            durability: storage.in_force.durability(),
            compaction_read_bytes: get(&metrics.compaction_read_bytes),
            filter_bytes_written: get(&metrics.filter_bytes),
            filters_rebuilt: get(&metrics.filters_rebuilt),
            background_failures: get(&metrics.background_failures),
            descriptor_waits: get(&metrics.descriptor_waits),
            stalls: get(&metrics.stalls),
            events_dropped: storage.events.dropped(),
            stall_micros: get(&metrics.stall_micros),
            write_stall: WriteStall::of_metric(get(&metrics.write_stall)),
            shortages: get(&metrics.shortages),
            has_failed: engine.shared.has_failed(),
            memtables_waiting: view.immutable.len() as u64,
            memtable_bytes: view.memtables().map(|table| table.bytes() as u64).sum(),
            key_hash: storage.header.hasher.function(),
            follower_age: engine.follower.as_ref().map(|follower| follower.following().age()),
            latencies: storage.latencies.as_ref().map(|latencies| latencies.sums()),
            levels,
        }
    }
}
