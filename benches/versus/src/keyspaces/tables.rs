//! The results as tables on the terminal.

use super::large::SPACES;
use super::record::{
    BatchFigures, DropFigures, KeyspacesRecord, LookupFigures, OpenFigures, SmallFigures, StoreResult,
};
use super::rows::{KEY_BYTES, VALUE_BYTES};
use super::small::ROWS;
use super::store::SpaceFilter;
use crate::error::Result;
use crate::format::{bytes, count, nanos, number, shown};
use crate::rounds;
use crate::table::{aligned, headed};
use crate::terminal::{self, print_notes};
use std::io::Write;

const LOOKUP_HEAD: [&str; 7] =
    ["store", "hits, found", "missing", "misses, found", "missing", "mixed, found", "missing"];

const LARGE_HEAD: [&str; 9] = [
    "store",
    "load, rows/s",
    "until settled, rows/s",
    "own memory",
    "page cache",
    "filters",
    "disk",
    "batches of 3, rows/s",
    "until settled, rows/s",
];

const SMALL_HEAD: [&str; 11] = [
    "store",
    "create one by one",
    "with one call",
    "put",
    "settle",
    "close",
    "files",
    "disk",
    "open all",
    "own memory",
    "mapped",
];

const DROP_HEAD: [&str; 9] = [
    "store",
    "drop",
    "read from disk",
    "read by calls",
    "dirtied",
    "disk before",
    "disk after",
    "after",
    "read until then",
];

impl KeyspacesRecord {
    /// The machine, the sizes and the configurations.
    pub fn print_head(&self) -> Result<()> {
        terminal::print_head(&self.date, &self.machine)?;
        let (mut out, settings) = (std::io::stdout().lock(), &self.settings);
        writeln!(
            out,
            "keys of {KEY_BYTES} bytes, half-compressible values of {VALUE_BYTES} bytes; three keyspaces of {} rows ({}); \
             {} small keyspaces of {ROWS} rows; a keyspace of {} to drop; {} lookups of each kind, {} batches; rounds: {}",
            count(settings.num as f64),
            describe_spaces(),
            count(settings.small as f64),
            bytes(settings.drop_bytes as f64),
            count(settings.reads as f64),
            count(settings.batches as f64),
            settings.rounds
        )?;
        let mut describe = |of: &StoreResult| writeln!(out, "{}: {}", of.store.name(), of.description);
        Ok(self.stores.iter().try_for_each(&mut describe)?)
    }

    /// All tables of what was measured, and notes.
    pub fn print(&self) -> Result<()> {
        let is_large = self.stores.iter().any(|of| of.load.is_some());
        let is_small = self.stores.iter().any(|of| !of.small.is_empty());
        let is_dropped = self.stores.iter().any(|of| !of.dropped.is_empty());
        if is_large {
            self.print_table("large keyspaces: a get, by keyspace", LOOKUP_HEAD, Self::lookup_row)?;
            self.print_table("large keyspaces", LARGE_HEAD, Self::large_row)?;
        }
        if is_small {
            self.print_table("small keyspaces", SMALL_HEAD, Self::small_row)?;
        }
        if is_dropped {
            self.print_table("dropping a keyspace", DROP_HEAD, Self::drop_row)?;
        }
        print_notes(&self.notes)
    }

    fn print_table<const N: usize>(
        &self,
        name: &str,
        head: [&str; N],
        row: fn(&Self, &StoreResult) -> Vec<String>,
    ) -> Result<()> {
        let rows = headed(head, self.stores.iter().map(|of| row(self, of)));
        Ok(writeln!(std::io::stdout().lock(), "\n{name}\n{}", aligned(&rows))?)
    }

    fn lookup_row(&self, of: &StoreResult) -> Vec<String> {
        let of_space = |space: usize| {
            let found = median(&of.lookups, |round: &LookupFigures| round.found_ns[space]);
            let missing = median(&of.lookups, |round: &LookupFigures| round.missing_ns[space]);
            [shown(found, nanos), shown(missing, nanos)]
        };
        let name = std::iter::once(of.store.name().to_owned());
        name.chain((0..SPACES.len()).flat_map(of_space)).collect()
    }

    fn large_row(&self, of: &StoreResult) -> Vec<String> {
        let rows = SPACES.len() as f64 * self.settings.num as f64 * 1e9;
        let load = of.load.as_ref();
        let lookups = |figure: fn(&LookupFigures) -> u64| median(&of.lookups, |round| figure(round) as f64);
        let batches = |figure: fn(&BatchFigures) -> f64| median(&of.batches, figure);
        let settled = load.map(|load| rows / (load.put_ns + load.settle_ns) as f64);
        vec![
            of.store.name().to_owned(),
            shown(load.map(|load| rows / load.put_ns as f64), count),
            shown(settled, count),
            shown(lookups(|round| round.memory_bytes), bytes),
            shown(lookups(|round| round.page_cache_bytes), bytes),
            shown(load.and_then(|load| load.filter_bytes).map(|size| size as f64), bytes),
            shown(load.map(|load| load.disk_bytes as f64), bytes),
            shown(batches(|round| round.rows_per_second), count),
            shown(batches(|round| round.settled_per_second), count),
        ]
    }

    fn small_row(&self, of: &StoreResult) -> Vec<String> {
        let small = |figure: fn(&SmallFigures) -> u64| median(&of.small, |round| figure(round) as f64);
        let opened = |figure: fn(&OpenFigures) -> u64| median(&of.opened, |round| figure(round) as f64);
        vec![
            of.store.name().to_owned(),
            shown(small(|round| round.create_ns), nanos),
            shown(median(&of.together, |round| round.create_ns as f64), nanos),
            shown(small(|round| round.put_ns), nanos),
            shown(small(|round| round.settle_ns), nanos),
            shown(small(|round| round.close_ns), nanos),
            shown(small(|round| round.files), count),
            shown(small(|round| round.disk_bytes), bytes),
            shown(opened(|round| round.open_ns), nanos),
            shown(opened(|round| round.memory_bytes), bytes),
            shown(opened(|round| round.mapped_bytes), bytes),
        ]
    }

    fn drop_row(&self, of: &StoreResult) -> Vec<String> {
        let figure = |figure: fn(&DropFigures) -> u64| median(&of.dropped, |round| figure(round) as f64);
        let seconds = median(&of.dropped, |round: &DropFigures| round.freed_seconds);
        vec![
            of.store.name().to_owned(),
            shown(figure(|round| round.drop_ns), nanos),
            shown(figure(|round| round.read_bytes), bytes),
            shown(figure(|round| round.read_call_bytes), bytes),
            shown(figure(|round| round.write_bytes), bytes),
            shown(figure(|round| round.disk_bytes_before), bytes),
            shown(figure(|round| round.disk_bytes_after), bytes),
            shown(seconds.map(|seconds| 1e9 * seconds), nanos),
            shown(figure(|round| round.read_bytes_until_freed), bytes),
        ]
    }
}

fn median<T>(figures: &[T], figure: impl Fn(&T) -> f64) -> Option<f64> {
    rounds::median(figures.iter().map(figure).collect())
}

/// The large keyspaces and their filters: `hits: no filters, misses: 15 bits per key`.
fn describe_spaces() -> String {
    let describe = |(name, filter): &(&str, SpaceFilter)| match filter {
        SpaceFilter::Off => format!("{name}: no filters"),
        SpaceFilter::Bits(bits) => format!("{name}: {} bits per key", number(*bits)),
        SpaceFilter::Default => format!("{name}: default filters"),
    };
    SPACES.iter().map(describe).collect::<Vec<_>>().join(", ")
}
