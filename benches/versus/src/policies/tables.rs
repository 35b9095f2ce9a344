//! The results as tables on the terminal.

use super::compared;
use super::record::{PoliciesRecord, PolicyResult};
use super::workloads::{COLD, FOUND, MISSING, MULTI_MISSING};
use crate::error::Result;
use crate::format::{bytes, count, nanos, number, percent, range, shown};
use crate::rounds;
use crate::shape;
use crate::table::{aligned, headed};
use crate::terminal::{self, print_notes};
use std::io::Write;

impl PoliciesRecord {
    /// The machine, the sizes and RocksDB's configuration.
    pub fn print_head(&self) -> Result<()> {
        terminal::print_head(&self.date, &self.machine)?;
        let (mut out, settings) = (std::io::stdout().lock(), &self.settings);
        writeln!(
            out,
            "{} keys of {} bytes, values of {} bytes; {} lookups warm, {} cold; rounds: {}",
            count(settings.num as f64),
            settings.key_bytes,
            settings.value_bytes,
            count(settings.reads as f64),
            count(settings.cold_reads as f64),
            self.rounds
        )?;
        writeln!(out, "{}", self.rocksdb)?;
        writeln!(out, "{}", shape::describe(settings.num))?;
        let mut policies = self.policies.iter();
        Ok(policies.try_for_each(|of| writeln!(out, "  {}: {}", of.filter, of.filter.describe()))?)
    }

    /// All tables and notes.
    pub fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nfilters\n{}", aligned(&self.rows(FILTER_HEAD, filter_row)))?;
        writeln!(out, "lookups\n{}", aligned(&self.rows(LOOKUP_HEAD, lookup_row)))?;
        writeln!(out, "writes\n{}", aligned(&self.rows(WRITE_HEAD, write_row)))?;
        let rows = compared::rows(self);
        if rows.len() > 1 {
            writeln!(out, "sidebloom's policies against RocksDB's own filters\n{}", aligned(&rows))?;
        }
        print_notes(&self.notes)
    }

    fn rows(&self, head: &[&str], row: fn(&Self, &PolicyResult) -> Vec<String>) -> Vec<Vec<String>> {
        let row = |of: &PolicyResult| std::iter::once(of.filter.to_string()).chain(row(self, of)).collect();
        headed(std::iter::once("policy").chain(head.iter().copied()), self.policies.iter().map(row))
    }
}

const FILTER_HEAD: &[&str] = &[
    "bits/key",
    "false positives",
    "±",
    "filters/lookup",
    "in files",
    "in the cache",
    "outside the cache",
    "keys found",
];

fn filter_row(_: &PoliciesRecord, of: &PolicyResult) -> Vec<String> {
    let filtered = |bytes: u64| (bytes > 0).then_some(bytes as f64);
    vec![
        shown(of.bits_per_key(), number),
        shown(of.answers.rate(), percent),
        shown(of.answers.relative_error(), percent),
        shown(of.answers.rate().map(|_| of.answers.probes_per_lookup()), number),
        shown(filtered(of.tables.filter_bytes), bytes),
        shown(of.tables.cached_filter_bytes.and_then(filtered), bytes),
        bytes(of.tables.readers_bytes as f64),
        count(of.found_keys as f64),
    ]
}

const LOOKUP_HEAD: &[&str] = &[
    "missing key",
    "p99.9",
    "CPU",
    "32 missing keys, each",
    "found key",
    "missing key, cold",
    "disk reads, cold",
    "resident",
];

fn lookup_row(_: &PoliciesRecord, of: &PolicyResult) -> Vec<String> {
    vec![
        shown(of.median(MISSING, |o| Some(o.mean_ns)), nanos),
        shown(of.median(MISSING, |o| Some(o.p999_ns)), nanos),
        shown(of.median(MISSING, |o| Some(o.cpu_ns_per_op)), nanos),
        shown(of.median(MULTI_MISSING, |o| Some(o.mean_ns)), nanos),
        shown(of.median(FOUND, |o| Some(o.mean_ns)), nanos),
        shown(of.median(COLD, |o| Some(o.mean_ns)), nanos),
        shown(of.median(COLD, |o| o.disk_reads_per_op), number),
        shown(of.median(MISSING, |o| Some(o.resident_bytes() as f64)), bytes),
    ]
}

const WRITE_HEAD: &[&str] = &[
    "load, settled",
    "rows/s",
    "load CPU",
    "write amp",
    "on disk",
    "compaction CPU",
    "min–max",
    "filter build, CPU/key",
];

fn write_row(record: &PoliciesRecord, of: &PolicyResult) -> Vec<String> {
    let compactions = &of.compaction_cpu_seconds;
    let build = record.unfiltered().filter(|off| off.filter != of.filter).and_then(|off| of.build_ns(off));
    let seconds: fn(f64) -> String = |seconds| nanos(1e9 * seconds);
    vec![
        shown(of.load(|o| Some(o.ops as f64 / o.settled_per_second?)), seconds),
        shown(of.load(|o| o.settled_per_second), count),
        shown(of.load(|o| o.load_cpu_seconds), seconds),
        shown(of.load(|o| o.write_amplification), number),
        shown(of.load(|o| Some(o.disk_bytes as f64)), bytes),
        shown(rounds::median(compactions.clone()), seconds),
        range(compactions, seconds),
        shown(build, nanos),
    ]
}
