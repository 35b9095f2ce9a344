//! What was measured.

use super::store::StoreKind;
use crate::machine::Machine;
use serde::Serialize;

/// The record of an execution.
#[derive(Debug, Serialize)]
pub struct PrefixesRecord {
    /// When it began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// The configuration of each engine, in words.
    pub engines: [String; 2],
    /// Sizes and counts.
    pub settings: PrefixSettings,
    /// Each store.
    pub stores: Vec<StoreResult>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Sizes and counts.
#[derive(Debug, Clone, Serialize)]
pub struct PrefixSettings {
    /// Distinct prefixes in the store.
    pub prefixes: u64,
    /// Rows of a prefix.
    pub rows: u64,
    /// Lookups of each kind in a round, in memory.
    pub reads: u64,
    /// Lookups of absent prefixes in a round, from disk.
    pub cold_reads: u64,
    /// Rounds.
    pub rounds: u64,
}

/// The figures of one store.
#[derive(Debug, Serialize)]
pub struct StoreResult {
    /// Which store.
    pub store: StoreKind,
    /// Size of its filters in bytes.
    pub filter_bytes: u64,
    /// Written prefixes, found with all of their rows.
    pub prefixes_found: u64,
    /// What lookups of absent prefixes cost, apart from time.
    pub absent: AbsentCounts,
    /// Mean nanoseconds of a lookup in each round, in memory: an absent prefix, each with its own iterator.
    pub absent_ns: Vec<f64>,
    /// The same, by seeks of one iterator.
    pub one_iterator_ns: Vec<f64>,
    /// The same for a missing key whose prefix has rows.
    pub missing_key_ns: Vec<f64>,
    /// Mean nanoseconds of a lookup of an absent prefix in each round, from disk.
    pub cold_ns: Vec<f64>,
    /// Reads of the disk for each of these; empty if the kernel does not count them.
    pub cold_reads: Vec<f64>,
}

/// Counts of lookups of absent prefixes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AbsentCounts {
    /// Lookups.
    pub lookups: u64,
    /// Lookups that accessed a block, for which some filter must have answered "maybe".
    pub false_positives: u64,
    /// Blocks read, or found in the cache: data blocks, and in sidebloom also index blocks.
    pub block_accesses: u64,
}

impl StoreResult {
    /// The result of a store before anything is measured.
    pub fn new(store: StoreKind) -> Self {
        StoreResult {
            store,
            filter_bytes: 0,
            prefixes_found: 0,
            absent: AbsentCounts::default(),
            absent_ns: Vec::new(),
            one_iterator_ns: Vec::new(),
            missing_key_ns: Vec::new(),
            cold_ns: Vec::new(),
            cold_reads: Vec::new(),
        }
    }

    /// A count per lookup of an absent prefix.
    pub fn per_absent(&self, count: u64) -> f64 {
        count as f64 / self.absent.lookups.max(1) as f64
    }
}

impl PrefixesRecord {
    /// Filter bits per member: keys, distinct prefixes, or both.
    pub fn bits_per_member(&self, of: &StoreResult) -> f64 {
        let keys = if of.store.has_keys() { self.settings.prefixes * self.settings.rows } else { 0 };
        let prefixes = if of.store.has_prefixes() { self.settings.prefixes } else { 0 };
        8.0 * of.filter_bytes as f64 / (keys + prefixes) as f64
    }

    /// Filter bits that prefixes add, per distinct prefix; `None` if the filters have no prefixes.
    pub fn bits_per_prefix(&self, of: &StoreResult) -> Option<f64> {
        let keys = match of.store.without_prefixes() {
            Some(kind) => self.stores.iter().find(|other| other.store == kind)?.filter_bytes,
            None if of.store.has_keys() => return None,
            None => 0,
        };
        Some(8.0 * (of.filter_bytes as f64 - keys as f64) / self.settings.prefixes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_bits_of_a_prefix_are_what_filters_of_keys_alone_do_not_have() {
        let sized = |(store, filter_bytes)| StoreResult { filter_bytes, ..StoreResult::new(store) };
        let sizes = [1375, 125, 1250, 1100, 1000];
        let record = PrefixesRecord {
            date: String::new(),
            machine: Machine::here(Path::new("/")),
            engines: [String::new(), String::new()],
            settings: PrefixSettings { prefixes: 100, rows: 10, reads: 1, cold_reads: 1, rounds: 1 },
            stores: StoreKind::ALL.into_iter().zip(sizes).map(sized).collect(),
            notes: Vec::new(),
        };
        let of = |figure: &dyn Fn(&StoreResult) -> Option<f64>| -> Vec<_> {
            record.stores.iter().map(figure).collect()
        };
        let bits = of(&|one| record.bits_per_prefix(one));
        assert_eq!(bits, [Some(10.0), Some(10.0), None, Some(8.0), None]);
        let bits = of(&|one| Some(record.bits_per_member(one)));
        assert_eq!(bits, [Some(10.0), Some(10.0), Some(10.0), Some(8.0), Some(8.0)]);
    }
}
