//! All families: the one home of their names, in the order of the text and of docs/metrics.md.
//!
//! Names follow Prometheus' conventions: the unit is in the name, base units only (seconds, bytes), `_total`
//! for counters, `_ratio` for 0 to 1. Durations of [`Stats`] are converted.

use super::family::Kind::{Counter, Gauge, Histogram};
use super::family::Values::{By, Keyspace, Latencies, Level, MaybeStore, Store};
use super::family::{Family, Kind, Values};
use crate::event::WriteStall;
use crate::options::Durability;

const fn family(name: &'static str, kind: Kind, values: Values, help: &'static str) -> Family {
    Family { name, kind, help, values }
}

const MICROS_PER_SECOND: f64 = 1e6;

#[rustfmt::skip]
pub(super) static FAMILIES: &[Family] = &[
    // Memory.
    family("sidebloom_memtable_bytes", Gauge, Store(|s| s.memtable_bytes.into()),
        "Memory of the memtables."),
    family("sidebloom_index_bytes", Gauge, Store(|s| s.index_bytes.into()),
        "Memory of the indexes of open segments that no lookup evicts."),
    family("sidebloom_block_cache_bytes", Gauge, Store(|s| s.block_cache_bytes.into()),
        "Memory of the block cache in use."),
    family("sidebloom_block_cache_capacity_bytes", Gauge, Store(|s| s.block_cache_capacity.into()),
        "Size of the block cache."),
    family("sidebloom_filter_pinned_bytes", Gauge, Store(|s| s.filter_bytes_pinned.into()),
        "Memory of the filters, if they are pinned; 0 if they are mapped."),
    family("sidebloom_filters_mapped", Gauge, Store(|s| s.filters_mapped.into()),
        "Filters that are mapped."),
    family("sidebloom_segment_mapped_bytes", Gauge, Store(|s| s.segment_bytes_mapped.into()),
        "Size of the segments that are mapped. The page cache has as much of them as fits."),
    family("sidebloom_segments_open", Gauge, Store(|s| s.segments_open.into()),
        "Segment files that are open."),
    // Backlog.
    family("sidebloom_memtables_waiting", Gauge, Store(|s| s.memtables_waiting.into()),
        "Full memtables that wait for a flush, or are in one. Writers stall at 2."),
    family("sidebloom_compactions_running", Gauge, Store(|s| s.compactions_running.into()),
        "Compactions that are running."),
    family("sidebloom_background_threads", Gauge, Store(|s| s.background_threads.into()),
        "Threads for flushing and compaction, as set."),
    family("sidebloom_compaction_limit_bytes_per_second", Gauge, Store(|s| s.compaction_bytes_per_second.into()),
        "What compactions may read and write; 0 if unlimited."),
    family("sidebloom_compaction_throttled_seconds_total", Counter, Store(|s| (s.compaction_throttled_micros as f64 / MICROS_PER_SECOND).into()),
        "Time that compactions have waited for this limit."),
    family("sidebloom_durability", Gauge, By("kind", |s| {
        [Durability::Os, Durability::Sync].map(|kind| (kind.name(), (s.durability == kind).into())).into()
    }), "1 for the moment at which a write is acknowledged that does not say so itself."),
    family("sidebloom_write_stalled", Gauge, By("reason", |s| {
        [WriteStall::Flush, WriteStall::Compaction].map(|why| (why.name(), (s.write_stall == Some(why)).into())).into()
    }), "1 while a writer waits for a flush or a compaction."),
    family("sidebloom_stalls_total", Counter, Store(|s| s.stalls.into()),
        "How often a writer has waited for a flush or a compaction."),
    family("sidebloom_stall_seconds_total", Counter, Store(|s| (s.stall_micros as f64 / MICROS_PER_SECOND).into()),
        "Time by which writers were slowed down or stalled."),
    // Damage and shortages.
    family("sidebloom_failed", Gauge, Store(|s| s.has_failed.into()),
        "1 if the store takes no more writes after a failure, until it is reopened."),
    family("sidebloom_segments_quarantined", Gauge, Store(|s| s.segments_quarantined.into()),
        "Segments of which a part cannot be read."),
    family("sidebloom_segments_of_earlier_formats", Gauge, Store(|s| s.segments_of_earlier_formats.into()),
        "Segments in a format of an earlier release, which the next one may not read."),
    family("sidebloom_filters_unavailable_total", Counter, Store(|s| s.filters_unavailable.into()),
        "Filters found missing or unusable. They are rebuilt in the background."),
    family("sidebloom_filters_rebuilt_total", Counter, Store(|s| s.filters_rebuilt.into()),
        "Filters written for segments that had none, an unusable one, or one for another policy."),
    family("sidebloom_background_failures_total", Counter, Store(|s| s.background_failures.into()),
        "Failed attempts at background work, which is tried again."),
    family("sidebloom_shortages_total", Counter, By("resource", |s| {
        vec![("disk", s.shortages.into()), ("descriptors", s.descriptor_waits.into())]
    }), "Attempts that failed for lack of disk space or of file descriptors."),
    family("sidebloom_events_dropped_total", Counter, Store(|s| s.events_dropped.into()),
        "Events that the callback was not told because too many waited for it."),
    // Writes and what they cost.
    family("sidebloom_user_bytes_total", Counter, Store(|s| s.user_bytes.into()),
        "Bytes of keys and values written by the user. What is written below, divided by this, is the write amplification."),
    family("sidebloom_log_bytes_total", Counter, Store(|s| s.log_bytes.into()),
        "Bytes appended to logs."),
    family("sidebloom_flushes_total", Counter, Store(|s| s.flushes.into()),
        "Memtables flushed."),
    family("sidebloom_flush_bytes_total", Counter, Store(|s| s.flush_bytes.into()),
        "Bytes of segments written by flushes."),
    family("sidebloom_compactions_total", Counter, Store(|s| s.compactions.into()),
        "Compactions that have ended."),
    family("sidebloom_compaction_written_bytes_total", Counter, Store(|s| s.compaction_bytes.into()),
        "Bytes of segments written by compactions."),
    family("sidebloom_compaction_read_bytes_total", Counter, Store(|s| s.compaction_read_bytes.into()),
        "Bytes of segments read by compactions."),
    family("sidebloom_filter_written_bytes_total", Counter, Store(|s| s.filter_bytes_written.into()),
        "Bytes of filters written."),
    // Reads.
    family("sidebloom_block_reads_total", Counter, Store(|s| s.block_reads.into()),
        "Blocks read from segment files."),
    family("sidebloom_block_cache_hits_total", Counter, Store(|s| s.block_cache_hits.into()),
        "Blocks found in the block cache, or read in place."),
    family("sidebloom_read_bytes_total", Counter, Store(|s| s.bytes_read.into()),
        "Bytes read from segments, except by compactions."),
    family("sidebloom_segment_opens_total", Counter, Store(|s| s.segment_opens.into()),
        "How often a segment file was opened."),
    // Filters.
    family("sidebloom_filter_probes_total", Counter, Store(|s| s.filter_probes.into()),
        "Probes of filters for a key. Those that are neither negatives nor false positives found a key."),
    family("sidebloom_filter_negatives_total", Counter, Store(|s| s.filter_negatives.into()),
        "Probes answered \"absent\": reads that were avoided."),
    family("sidebloom_filter_false_positives_total", Counter, Store(|s| s.filter_false_positives.into()),
        "Probes answered \"maybe\" although the segment did not have the key."),
    family("sidebloom_prefix_probes_total", Counter, Store(|s| s.prefix_probes.into()),
        "Probes of filters for a prefix of keys."),
    family("sidebloom_prefix_negatives_total", Counter, Store(|s| s.prefix_negatives.into()),
        "Probes for a prefix answered \"absent\"."),
    family("sidebloom_expected_false_positives", Gauge, Store(|s| s.expected_false_positives().into()),
        "Expected number of false positives in a lookup of a missing key within the range of every run."),
    // Latencies, if Options::latency_histograms asks for them.
    family("sidebloom_latency_seconds", Histogram, Latencies,
        "Latency of operations. get_hit and get_miss are a sample of about one in 64, so their counts are too; put, commit (syncs of the log) and stall are complete."),
    // What a store follows.
    family("sidebloom_follower_age_seconds", Gauge, MaybeStore(|s| Some(s.follower_age?.as_secs_f64().into())),
        "In a store that follows another process: everything written longer ago than this is visible."),
    // Levels.
    family("sidebloom_level_runs", Gauge, Level(|l| l.runs.into()),
        "Sorted runs that a lookup may have to search. In level 0, writers slow down at 20 and stall at 36."),
    family("sidebloom_level_segments", Gauge, Level(|l| l.segments.into()), "Segments."),
    family("sidebloom_level_keys", Gauge, Level(|l| l.keys.into()), "Entries, tombstones included."),
    family("sidebloom_level_tombstones", Gauge, Level(|l| l.tombstones.into()), "Tombstones of keys."),
    family("sidebloom_level_range_tombstones", Gauge, Level(|l| l.range_tombstones.into()),
        "Ranges of keys that range tombstones delete."),
    family("sidebloom_level_expiring_keys", Gauge, Level(|l| l.expiring.into()),
        "Entries that expire, or have expired."),
    family("sidebloom_level_expired_keys", Gauge, Level(|l| l.expired.into()),
        "About how many entries have expired."),
    family("sidebloom_level_data_bytes", Gauge, Level(|l| l.data_bytes.into()), "Size of the segment files."),
    family("sidebloom_level_filters", Gauge, Level(|l| l.filters.into()), "Segments with a verified filter."),
    family("sidebloom_level_filter_bytes", Gauge, Level(|l| l.filter_bytes.into()), "Size of the filters."),
    family("sidebloom_level_expected_false_positive_ratio", Gauge, Level(|l| l.expected_fpr.into()),
        "Expected false-positive rate of the level's filters, weighted by keys."),
    family("sidebloom_level_filter_probes_total", Counter, Level(|l| l.filter_probes.into()),
        "Probes of the level's filters for a key."),
    family("sidebloom_level_filter_negatives_total", Counter, Level(|l| l.filter_negatives.into()),
        "Probes of the level's filters answered \"absent\"."),
    family("sidebloom_level_filter_false_positives_total", Counter, Level(|l| l.filter_false_positives.into()),
        "Probes of the level's filters answered \"maybe\" although the segment did not have the key."),
    // Keyspaces. The default one has the empty name.
    family("sidebloom_keyspace_segments", Gauge, Keyspace(|k| k.segments.into()),
        "Segments that have only the keyspace's keys. The other figures are theirs."),
    family("sidebloom_keyspace_shared_segments", Gauge, Keyspace(|k| k.shared_segments.into()),
        "Other segments that may have keys of the keyspace."),
    family("sidebloom_keyspace_keys", Gauge, Keyspace(|k| k.keys.into()), "Entries, tombstones included."),
    family("sidebloom_keyspace_tombstones", Gauge, Keyspace(|k| k.tombstones.into()), "Tombstones of keys."),
    family("sidebloom_keyspace_range_tombstones", Gauge, Keyspace(|k| k.range_tombstones.into()),
        "Ranges whose older entries are deleted."),
    family("sidebloom_keyspace_expiring_keys", Gauge, Keyspace(|k| k.expiring.into()),
        "Entries that expire, or have expired."),
    family("sidebloom_keyspace_expired_keys", Gauge, Keyspace(|k| k.expired.into()),
        "About how many entries have expired."),
    family("sidebloom_keyspace_data_bytes", Gauge, Keyspace(|k| k.data_bytes.into()), "Size of the segment files."),
    family("sidebloom_keyspace_filters", Gauge, Keyspace(|k| k.filters.into()), "Segments with a verified filter."),
    family("sidebloom_keyspace_filter_bytes", Gauge, Keyspace(|k| k.filter_bytes.into()), "Size of the filters."),
    family("sidebloom_keyspace_expected_false_positive_ratio", Gauge, Keyspace(|k| k.expected_fpr.into()),
        "Expected false-positive rate of the keyspace's filters, weighted by keys."),
];
