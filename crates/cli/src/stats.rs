//! `sidebloom stats`: the contents of the store, level by level.

use crate::context::{Context, Failure, Outcome};
use crate::expiries::Expiries;
use crate::keyspace_arg::{KeyspaceArg, OpenKeyspace};
use crate::{human, keyspace_stats, progress};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use sidebloom::{Exposition, Latencies, LevelStats, MAX_KEY_BYTES, Stats};
use std::collections::BTreeMap;
use std::io::Write;

/// Print the contents and false-positive rates of each level
///
/// The levels hold the rows of all keyspaces; --keyspace prints what one has. Observed rates start when the
/// store is opened, so there are none at first; --probe looks up absent keys before printing.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    keyspace: KeyspaceArg,
    /// Look up this many absent keys first: present keys with a suffix, spread over the whole keyspace.
    /// Reads every key, more than once if there are fewer
    #[arg(long, value_name = "N", default_value_t = 0)]
    probe: u64,
    /// Print the metrics of the store and of all keyspaces for Prometheus; docs/metrics.md lists them
    #[arg(long, conflicts_with = "keyspace")]
    prometheus: bool,
}

#[derive(Serialize)]
struct Report {
    levels: Vec<LevelRow>,
    total: LevelRow,
    /// For an absent key within the range of every run: how many filters let it through.
    expected_false_positives_per_lookup: f64,
    memtable_bytes: u64,
    filters_unavailable: u64,
    segments_quarantined: u64,
    segments_of_earlier_formats: u64,
    /// Absent keys looked up by --probe.
    probed: u64,
    key_hash: &'static str,
    since_opening: SinceOpening,
}

/// Counters since the store was opened.
#[derive(Serialize)]
struct SinceOpening {
    #[serde(flatten)]
    counters: BTreeMap<&'static str, u64>,
    segments_open: u64,
    segment_bytes_mapped: u64,
    index_bytes: u64,
    block_cache_bytes: u64,
    block_cache_capacity: u64,
    filter_bytes_pinned: u64,
    filters_mapped: u64,
    compactions_running: u64,
    background_threads: u64,
    compaction_bytes_per_second: u64,
    durability: &'static str,
    memtables_waiting: u64,
    has_failed: bool,
    latencies: Option<Latencies>,
    write_amplification: f64,
    write_stall: Option<String>,
    /// What another process wrote longer ago than this, in seconds, is included.
    follower_age: Option<f64>,
}

/// One level, or all of them.
#[derive(Serialize)]
struct LevelRow {
    level: Option<usize>,
    runs: usize,
    segments: usize,
    keys: u64,
    tombstones: u64,
    range_tombstones: u64,
    #[serde(flatten)]
    expiries: Expiries,
    data_bytes: u64,
    filter_bytes: u64,
    /// Distinct prefixes in the filters.
    filter_prefixes: u64,
    /// Segments with a usable filter.
    filters: usize,
    filter_kinds: Vec<String>,
    bits_per_key: f64,
    expected_fpr: f64,
    /// `None` if no filter was probed for an absent key since the store was opened.
    observed_fpr: Option<f64>,
    /// Number of filter probes for absent keys in that rate.
    observed_answers: u64,
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if self.prometheus {
            cx.refuse_json("stats --prometheus")?;
        }
        let opened = self.keyspace.open_to_read(cx)?;
        let db = &opened.db;
        db.warm()?; // Otherwise filters not verified yet would count as missing.
        let probed = if self.probe > 0 { ask_for_absent_keys(&opened, self.probe)? } else { 0 };
        if self.prometheus {
            let mut metrics = Exposition::new();
            metrics.add_store("", db)?;
            write!(cx.out(), "{metrics}")?;
            return Ok(Outcome::Found);
        }
        let stats = db.stats();
        if self.keyspace.is_given() {
            let observed = total(&stats.levels).observed_fpr();
            let report = keyspace_stats::Report::new(&opened.stats()?, probed, observed);
            cx.report(&report, |out| report.print(out))?;
            return Ok(Outcome::Found);
        }
        let report = Report::new(&stats, probed);
        cx.report(&report, |out| {
            report.print(out)?;
            print_since_opening(&stats, out)
        })?;
        Ok(Outcome::Found)
    }
}

/// Picks keys evenly from the keyspace and looks each up with a unique suffix, so that it falls into the same
/// segments and is (almost certainly) absent. Repeats the keys until it has made `probes` lookups. Returns
/// their number: fewer only in an empty keyspace.
fn ask_for_absent_keys(of: &OpenKeyspace, probes: u64) -> Result<u64, Failure> {
    let keys: u64 = of.db.stats().levels.iter().map(|level| level.keys).sum();
    let bar = progress::bar("looking up absent keys", probes);
    let mut asked = 0;
    while asked < probes {
        let (before, left) = (asked, probes - asked);
        let stride = usize::try_from((keys / left).max(1)).unwrap_or(usize::MAX);
        for row in of.iter().step_by(stride).take(usize::try_from(left).unwrap_or(usize::MAX)) {
            let (mut key, _) = row?;
            key.truncate(MAX_KEY_BYTES - SUFFIX_BYTES_MAX);
            key.extend_from_slice(format!("\0absent{asked}").as_bytes());
            of.contains_key(&key)?;
            asked += 1;
            bar.inc(1);
        }
        if asked == before {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(asked)
}

/// "\0absent" and a number.
const SUFFIX_BYTES_MAX: usize = 32;

impl Report {
    fn new(stats: &Stats, probed: u64) -> Self {
        let levels = stats.levels.iter().map(|level| LevelRow::new(Some(level.level), level)).collect();
        Report {
            levels,
            total: LevelRow::new(None, &total(&stats.levels)),
            expected_false_positives_per_lookup: stats.expected_false_positives(),
            memtable_bytes: stats.memtable_bytes,
            filters_unavailable: stats.filters_unavailable,
            segments_quarantined: stats.segments_quarantined,
            segments_of_earlier_formats: stats.segments_of_earlier_formats,
            probed,
            key_hash: stats.key_hash.name(),
            since_opening: SinceOpening::new(stats),
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<(), Failure> {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED.with_rounded_corners());
        table.set_header([
            "level",
            "runs",
            "segments",
            "keys",
            "data",
            "filters",
            "kind",
            "bits/key",
            "FPR expected",
            "FPR observed",
        ]);
        for level in self.levels.iter().filter(|level| level.segments > 0) {
            table.add_row(level.cells());
        }
        table.add_row(self.total.cells());
        table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        writeln!(out, "{table}")?;
        let memtable = human::bytes(self.memtable_bytes as f64);
        writeln!(out, "memtables: {memtable}; filters unavailable: {}", self.filters_unavailable)?;
        if self.segments_quarantined > 0 {
            let quarantined = human::count(self.segments_quarantined);
            writeln!(out, "quarantined segments: {quarantined}; run `sidebloom repair`")?;
        }
        if self.segments_of_earlier_formats > 0 {
            let earlier = human::count(self.segments_of_earlier_formats);
            writeln!(out, "segments in formats of earlier releases: {earlier}; run `sidebloom compact`")?;
        }
        let expected = human::percent(self.expected_false_positives_per_lookup, 1.0);
        writeln!(out, "expected false positives in a lookup of an absent key: {expected}")?;
        if self.probed > 0 {
            writeln!(out, "looked up {} absent keys", human::count(self.probed))?;
        }
        writeln!(out, "keys are hashed with {}", self.key_hash)?;
        self.total.expiries.print(self.total.keys, out)
    }
}

impl SinceOpening {
    fn new(stats: &Stats) -> Self {
        SinceOpening {
            counters: stats.counters().collect(),
            segments_open: stats.segments_open,
            segment_bytes_mapped: stats.segment_bytes_mapped,
            index_bytes: stats.index_bytes,
            block_cache_bytes: stats.block_cache_bytes,
            block_cache_capacity: stats.block_cache_capacity,
            filter_bytes_pinned: stats.filter_bytes_pinned,
            compactions_running: stats.compactions_running,
            background_threads: stats.background_threads,
            compaction_bytes_per_second: stats.compaction_bytes_per_second,
            durability: stats.durability.name(),
            memtables_waiting: stats.memtables_waiting,
            has_failed: stats.has_failed,
            latencies: stats.latencies.clone(),
            filters_mapped: stats.filters_mapped,
            write_amplification: stats.write_amplification(),
            write_stall: stats.write_stall.map(|cause| format!("{cause:?}").to_lowercase()),
            follower_age: stats.follower_age.map(|age| age.as_secs_f64()),
        }
    }
}

/// A store opened for reading writes nothing, so the write counters appear in the JSON form only.
fn print_since_opening(stats: &Stats, out: &mut impl Write) -> Result<(), Failure> {
    let [reads, hits] = [stats.block_reads, stats.block_cache_hits].map(human::count);
    let [open, mapped] = [stats.segments_open, stats.filters_mapped].map(human::count);
    let bytes = human::bytes(stats.bytes_read as f64);
    writeln!(
        out,
        "since opening: {bytes} and {reads} blocks read, {hits} from the cache; {open} segments open, {mapped} filters mapped"
    )?;
    let [space, descriptors] = [stats.shortages, stats.descriptor_waits].map(human::count);
    let stalled = human::nanos(stats.stall_micros as f64 * 1e3);
    writeln!(
        out,
        "shortages: {space} of disk space, {descriptors} of descriptors; writers stalled for {stalled}"
    )?;
    Ok(())
}

/// Sums over the levels. The expected rate is the mean over the keys, as within each level.
fn total(levels: &[LevelStats]) -> LevelStats {
    let mut total = LevelStats::default();
    for level in levels {
        total.runs += level.runs;
        total.segments += level.segments;
        total.keys += level.keys;
        total.tombstones += level.tombstones;
        total.range_tombstones += level.range_tombstones;
        total.expiring += level.expiring;
        total.expired += level.expired;
        total.next_expiry = total.next_expiry.into_iter().chain(level.next_expiry).min();
        total.data_bytes += level.data_bytes;
        total.filter_bytes += level.filter_bytes;
        total.filter_prefixes += level.filter_prefixes;
        total.filters += level.filters;
        total.filter_kinds.extend(level.filter_kinds.iter().cloned());
        total.filter_false_positives += level.filter_false_positives;
        total.filter_negatives += level.filter_negatives;
        total.expected_fpr += level.expected_fpr * level.keys as f64;
    }
    total.expected_fpr /= total.keys.max(1) as f64;
    total.filter_kinds.sort();
    total.filter_kinds.dedup();
    total
}

impl LevelRow {
    fn new(level: Option<usize>, stats: &LevelStats) -> Self {
        LevelRow {
            level,
            runs: stats.runs,
            segments: stats.segments,
            keys: stats.keys,
            tombstones: stats.tombstones,
            range_tombstones: stats.range_tombstones,
            expiries: Expiries::new(stats.expiring, stats.expired, stats.next_expiry),
            data_bytes: stats.data_bytes,
            filter_bytes: stats.filter_bytes,
            filter_prefixes: stats.filter_prefixes,
            filters: stats.filters,
            filter_kinds: stats.filter_kinds.clone(),
            bits_per_key: 8.0 * stats.filter_bytes as f64 / stats.keys.max(1) as f64,
            expected_fpr: stats.expected_fpr,
            observed_fpr: stats.observed_fpr(),
            observed_answers: stats.filter_negatives + stats.filter_false_positives,
        }
    }

    fn cells(&self) -> [String; 10] {
        [
            self.level.map_or("all".to_owned(), |level| level.to_string()),
            self.runs.to_string(),
            human::count(self.segments as u64),
            human::count(self.keys),
            human::bytes(self.data_bytes as f64),
            human::bytes(self.filter_bytes as f64),
            self.filter_kinds.join(" "),
            format!("{:.1}", self.bits_per_key),
            human::percent(self.expected_fpr, 1.0),
            self.observed_fpr.map_or("–".to_owned(), |rate| {
                format!("{} of {}", human::percent(rate, 1.0), human::count(self.observed_answers))
            }),
        ]
    }
}
