//! The results as tables on the terminal.

use super::record::{PrefixesRecord, StoreResult};
use super::rows::{KEY_BYTES, VALUE_BYTES};
use crate::error::Result;
use crate::format::{bytes, count, nanos, number, range, shown};
use crate::rounds;
use crate::table::{aligned, headed};
use crate::terminal::{self, print_notes};
use std::io::Write;

const FILTER_HEAD: [&str; 7] = [
    "store",
    "filters",
    "bits/member",
    "more bits/prefix",
    "false positives / absent prefix",
    "blocks / absent prefix",
    "prefixes found",
];

const LOOKUP_HEAD: [&str; 8] = [
    "store",
    "absent prefix",
    "min–max",
    "one iterator",
    "missing key",
    "absent prefix, cold",
    "min–max",
    "disk reads, cold",
];

impl PrefixesRecord {
    /// The machine, the sizes and the configurations.
    pub fn print_head(&self) -> Result<()> {
        terminal::print_head(&self.date, &self.machine)?;
        let (mut out, settings) = (std::io::stdout().lock(), &self.settings);
        writeln!(
            out,
            "{} prefixes of {} rows, keys of {KEY_BYTES} bytes, values of {VALUE_BYTES} bytes; {} lookups warm, {} cold; rounds: {}",
            count(settings.prefixes as f64),
            settings.rows,
            count(settings.reads as f64),
            count(settings.cold_reads as f64),
            settings.rounds
        )?;
        Ok(self.engines.iter().try_for_each(|engine| writeln!(out, "{engine}"))?)
    }

    /// All tables and notes.
    pub fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nfilters\n{}", aligned(&self.rows(FILTER_HEAD, Self::filter_row)))?;
        writeln!(out, "lookups\n{}", aligned(&self.rows(LOOKUP_HEAD, Self::lookup_row)))?;
        print_notes(&self.notes)
    }

    fn rows<const N: usize>(
        &self,
        head: [&str; N],
        row: fn(&Self, &StoreResult) -> Vec<String>,
    ) -> Vec<Vec<String>> {
        headed(head, self.stores.iter().map(|of| row(self, of)))
    }

    fn filter_row(&self, of: &StoreResult) -> Vec<String> {
        vec![
            of.store.name().to_owned(),
            bytes(of.filter_bytes as f64),
            number(self.bits_per_member(of)),
            shown(self.bits_per_prefix(of), number),
            shown(of.store.has_prefixes().then(|| of.per_absent(of.absent.false_positives)), number),
            number(of.per_absent(of.absent.block_accesses)),
            count(of.prefixes_found as f64),
        ]
    }

    fn lookup_row(&self, of: &StoreResult) -> Vec<String> {
        let median = |rounds: &[f64]| rounds::median(rounds.to_vec());
        vec![
            of.store.name().to_owned(),
            shown(median(&of.absent_ns), nanos),
            range(&of.absent_ns, nanos),
            shown(median(&of.one_iterator_ns), nanos),
            shown(median(&of.missing_key_ns), nanos),
            shown(median(&of.cold_ns), nanos),
            range(&of.cold_ns, nanos),
            shown(median(&of.cold_reads), number),
        ]
    }
}
