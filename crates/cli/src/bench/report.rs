//! The report of a workload: a line, or a JSON object.

use super::drive::WorkloadResult;
use super::workload::Workload;
use crate::context::{Context, Failure};
use crate::human;
use crate::system::{self, DiskReads, PageCache};
use serde::Serialize;
use sidebloom::Db;
use std::io::Write;
use std::time::Duration;

/// The counters in a report: totals, or the difference over one workload.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StoreCounters {
    filter_probes: u64,
    filter_negatives: u64,
    filter_false_positives: u64,
    filters_unavailable: u64,
    block_reads: u64,
    block_cache_hits: u64,
    bytes_read: u64,
    user_bytes: u64,
    log_bytes: u64,
    flush_bytes: u64,
    compaction_bytes: u64,
    filter_bytes_written: u64,
    stall_micros: u64,
}

impl StoreCounters {
    /// Current totals.
    pub fn new(db: &Db) -> Self {
        let stats = db.stats();
        StoreCounters {
            filter_probes: stats.filter_probes,
            filter_negatives: stats.filter_negatives,
            filter_false_positives: stats.filter_false_positives,
            filters_unavailable: stats.filters_unavailable,
            block_reads: stats.block_reads,
            block_cache_hits: stats.block_cache_hits,
            bytes_read: stats.bytes_read,
            user_bytes: stats.user_bytes,
            log_bytes: stats.log_bytes,
            flush_bytes: stats.flush_bytes,
            compaction_bytes: stats.compaction_bytes,
            filter_bytes_written: stats.filter_bytes_written,
            stall_micros: stats.stall_micros,
        }
    }

    pub fn since(self, before: &StoreCounters) -> StoreCounters {
        StoreCounters {
            filter_probes: self.filter_probes - before.filter_probes,
            filter_negatives: self.filter_negatives - before.filter_negatives,
            filter_false_positives: self.filter_false_positives - before.filter_false_positives,
            filters_unavailable: self.filters_unavailable - before.filters_unavailable,
            block_reads: self.block_reads - before.block_reads,
            block_cache_hits: self.block_cache_hits - before.block_cache_hits,
            bytes_read: self.bytes_read - before.bytes_read,
            user_bytes: self.user_bytes - before.user_bytes,
            log_bytes: self.log_bytes - before.log_bytes,
            flush_bytes: self.flush_bytes - before.flush_bytes,
            compaction_bytes: self.compaction_bytes - before.compaction_bytes,
            filter_bytes_written: self.filter_bytes_written - before.filter_bytes_written,
            stall_micros: self.stall_micros - before.stall_micros,
        }
    }

    /// Bytes written to files per byte put.
    fn write_amplification(&self) -> Option<f64> {
        let written = self.log_bytes + self.flush_bytes + self.compaction_bytes + self.filter_bytes_written;
        (self.user_bytes > 0).then(|| written as f64 / self.user_bytes as f64)
    }
}

/// What was measured around a workload.
pub struct Observed {
    /// The workload's own result.
    pub result: WorkloadResult,
    /// The store's counters over the workload and the compactions after it.
    pub counters: StoreCounters,
    /// Disk reads during the workload.
    pub disk: DiskReads,
    /// After writes: from the last write until all compactions were done.
    pub settle: Option<Duration>,
    /// For cold workloads: how the page cache was dropped before.
    pub page_cache: Option<PageCache>,
    /// The sum of the false-positive rates of all runs after the workload.
    pub expected_false_positives: f64,
}

/// The figures of a workload.
#[derive(Serialize)]
pub struct Report {
    workload: String,
    ops: u64,
    found: Option<u64>,
    seconds: f64,
    ops_per_second: f64,
    mean_ns: f64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    timed_calls: u64,
    /// Reads of the device, for the whole machine.
    disk_reads_per_op: Option<f64>,
    /// Bytes read by this process.
    disk_bytes_per_op: Option<f64>,
    page_cache: Option<PageCache>,
    /// From the last write until all compactions were done.
    settle_seconds: Option<f64>,
    write_amplification: Option<f64>,
    peak_memory_bytes: Option<u64>,
    concurrent_puts_per_second: Option<f64>,
    /// After the workload: the sum of the false-positive rates of all runs.
    expected_false_positives_per_absent_key: f64,
    counters: StoreCounters,
}

impl Report {
    /// Computes the figures per operation.
    pub fn new(workload: Workload, threads: u64, observed: Observed) -> Self {
        let Observed { result, counters, disk, settle, page_cache, expected_false_positives } = observed;
        let seconds = result.timing.elapsed.as_secs_f64();
        let per_op = |n: u64| n as f64 / result.ops.max(1) as f64;
        let latencies = &result.timing.latencies;
        Report {
            workload: workload.name(),
            ops: result.ops,
            found: result.found,
            seconds,
            ops_per_second: result.ops as f64 / seconds,
            mean_ns: seconds * 1e9 * threads as f64 / result.ops.max(1) as f64,
            p50_ns: latencies.value_at_quantile(0.5),
            p99_ns: latencies.value_at_quantile(0.99),
            p999_ns: latencies.value_at_quantile(0.999),
            timed_calls: latencies.len(),
            disk_reads_per_op: disk.reads.map(per_op),
            disk_bytes_per_op: disk.bytes.map(per_op),
            page_cache,
            settle_seconds: settle.map(|settle| settle.as_secs_f64()),
            write_amplification: counters.write_amplification(),
            peak_memory_bytes: system::peak_memory_bytes(),
            concurrent_puts_per_second: result.concurrent_puts.map(|puts| puts as f64 / seconds),
            expected_false_positives_per_absent_key: expected_false_positives,
            counters,
        }
    }

    /// Prints it to standard output.
    pub fn print(&self, cx: &Context) -> Result<(), Failure> {
        if cx.json {
            return cx.print_json(self);
        }
        let unknown = || "?".to_owned();
        let nanos = |ns: u64| if self.timed_calls > 1 { human::nanos(ns as f64) } else { "–".to_owned() };
        let asked = self.counters.filter_negatives + self.counters.filter_false_positives;
        print_line(
            cx,
            [
                &self.workload,
                &human::count(self.ops),
                &human::count(self.ops_per_second as u64),
                &human::nanos(self.mean_ns),
                &nanos(self.p50_ns),
                &nanos(self.p99_ns),
                &nanos(self.p999_ns),
                &self.found.map_or("–".to_owned(), |found| human::percent(found as f64, self.ops as f64)),
                &self.disk_reads_per_op.map_or_else(unknown, human::per_op),
                &self.disk_bytes_per_op.map_or_else(unknown, human::bytes),
                &human::percent(self.counters.filter_false_positives as f64, asked as f64),
            ],
        )?;
        self.print_details(cx)
    }

    fn print_details(&self, cx: &Context) -> Result<(), Failure> {
        let mut details = Vec::new();
        details.extend(self.settle_seconds.map(|seconds| format!("settled after {seconds:.1} s")));
        details.extend(self.write_amplification.map(|factor| self.describe_amplification(factor)));
        details.extend(
            self.peak_memory_bytes.map(|bytes| format!("peak memory {}", human::bytes(bytes as f64))),
        );
        details.extend(
            self.concurrent_puts_per_second
                .map(|rate| format!("{} concurrent puts/s", human::count(rate as u64))),
        );
        details.extend(self.describe_absent());
        details.extend(self.page_cache.as_ref().map(PageCache::describe));
        if self.counters.stall_micros > 0 {
            details.push(format!(
                "writers stalled for {}",
                human::nanos(self.counters.stall_micros as f64 * 1e3)
            ));
        }
        if self.counters.filters_unavailable > 0 {
            details
                .push(format!("{} probes without a filter", human::count(self.counters.filters_unavailable)));
        }
        Ok(writeln!(cx.out(), "  {}", details.join("; "))?)
    }

    /// False positives per absent key.
    fn describe_absent(&self) -> Option<String> {
        let absent = self.ops - self.found?.min(self.ops);
        let false_positives = self.counters.filter_false_positives as f64 / absent as f64;
        (absent > 0 && self.counters.filter_probes > 0).then(|| {
            let expected = human::per_op(self.expected_false_positives_per_absent_key);
            format!("{} false positives per absent key, {expected} expected", human::per_op(false_positives))
        })
    }

    fn describe_amplification(&self, factor: f64) -> String {
        let share = |bytes: u64| format!("{:.2}", bytes as f64 / self.counters.user_bytes as f64);
        format!(
            "write amplification {factor:.2} (log {}, flush {}, compaction {}, filters {})",
            share(self.counters.log_bytes),
            share(self.counters.flush_bytes),
            share(self.counters.compaction_bytes),
            share(self.counters.filter_bytes_written),
        )
    }
}

/// Prints the column names above the lines.
pub fn print_head(cx: &Context) -> Result<(), Failure> {
    if cx.json {
        return Ok(());
    }
    print_line(cx, ["", "", "", "", "", "", "", "", "disk", "disk", "false"])?;
    let names = [
        "workload",
        "ops",
        "ops/s",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "found",
        "reads/op",
        "bytes/op",
        "positives",
    ];
    print_line(cx, names)
}

fn print_line(cx: &Context, c: [&str; 11]) -> Result<(), Failure> {
    let [name, ops, rate, mean, p50, p99, p999, found, reads, bytes, fpr] = c;
    Ok(writeln!(
        cx.out(),
        "{name:<16} {ops:>11} {rate:>11} {mean:>8} {p50:>8} {p99:>8} {p999:>8} {found:>7} {reads:>9} {bytes:>9} {fpr:>9}"
    )?)
}
