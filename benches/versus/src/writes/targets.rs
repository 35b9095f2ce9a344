//! What sidebloom's conditional writes and transactions must reach, beside what was measured.

use super::kind::StoreKind;
use super::record::{StoreResult, WritesRecord};
use super::store::Outcome;
use super::workload::Workload;
use crate::format::{DASH, count, nanos, number, times};
use crate::rounds;

/// One target.
#[derive(Debug, PartialEq)]
pub struct Target {
    /// What was measured.
    pub name: String,
    /// The target, in words.
    pub bound: String,
    /// The figure, in words.
    pub measured: String,
    /// Whether it is reached; `None` if the figure is missing.
    pub is_reached: Option<bool>,
}

impl Target {
    fn new(
        name: impl Into<String>,
        bound: impl Into<String>,
        figure: Option<f64>,
        show: impl Fn(f64) -> String,
        is_reached: impl Fn(f64) -> bool,
    ) -> Self {
        Target {
            name: name.into(),
            bound: bound.into(),
            measured: figure.map_or(DASH.to_owned(), show),
            is_reached: figure.map(is_reached),
        }
    }

    /// Whether it is reached, as a word.
    pub fn verdict(&self) -> &'static str {
        match self.is_reached {
            Some(true) => "yes",
            Some(false) => "no",
            None => DASH,
        }
    }
}

impl WritesRecord {
    /// All targets.
    pub fn targets(&self) -> Vec<Target> {
        let Some(ours) = self.stores.iter().find(|of| of.store == StoreKind::Ours) else {
            return Vec::new();
        };
        let ratio = |base, of| rounds::ratio(ours.rounds_ns(base), ours.rounds_ns(of));
        let mut targets = vec![
            Target::new(
                "insert_new of new keys, against single puts",
                "≥ 0.9 ×",
                ratio(Workload::Put, Workload::InsertNew),
                times,
                |x| x >= 0.9,
            ),
            Target::new(
                "block reads for each insert of a new key, cold",
                "≤ 0.003",
                ours.counted(Workload::InsertCold)
                    .map(|(counts, ops, _)| counts.block_reads as f64 / ops as f64),
                number,
                |x| x <= 0.003,
            ),
            blocks_of_duplicates(ours),
            Target::new(
                "insert_new_many of 100 new keys, against single ones",
                "≥ 1.5 ×",
                ratio(Workload::InsertNew, Workload::InsertMany),
                times,
                |x| x >= 1.5,
            ),
        ];
        targets.extend([Workload::Uniform8, Workload::Zipf8].map(|workload| self.ahead(ours, workload)));
        // What a commit with these reads takes longer than one without.
        let medians = ours.validation.as_ref().map(|validation| validation.medians());
        for (name, at) in [("validating 100 absent reads", 0), ("the same, after a flush", 2)] {
            let figure = medians.and_then(|medians| Some(medians[at + 1]? - medians[at]?));
            targets.push(Target::new(name, "≤ 30 µs", figure, nanos, |ns| ns <= 30_000.0));
        }
        targets.push(spurious(ours));
        targets
    }

    /// sidebloom's throughput against that of the fastest other store.
    fn ahead(&self, ours: &StoreResult, workload: Workload) -> Target {
        let name = format!("{}, against the fastest peer", workload.name());
        let peers = self.stores.iter().filter(|of| of.store != StoreKind::Ours);
        let fastest = peers
            .filter_map(|of| Some((of, of.mean_ns(workload)?)))
            .min_by(|(_, a), (_, b)| a.total_cmp(b))
            .map(|(of, _)| of);
        let figure = fastest.and_then(|of| rounds::ratio(of.rounds_ns(workload), ours.rounds_ns(workload)));
        let of = fastest.map_or("", |of| of.store.name());
        Target::new(name, "> 1 ×", figure, |x| format!("{} ({of})", times(x)), |x| x > 1.0)
    }
}

/// With half of the keys there, blocks are read for these alone, and for false positives.
fn blocks_of_duplicates(ours: &StoreResult) -> Target {
    let (name, bound) = ("blocks looked at, half are duplicates", "= duplicates + false positives");
    let Some((counts, _, duplicates)) = ours.counted(Workload::InsertHalf) else {
        return Target::new(name, bound, None, number, |_| false);
    };
    let blocks = counts.block_reads + counts.cache_hits;
    let expected = duplicates + counts.false_positives;
    let [blocks_text, duplicates, false_positives] =
        [blocks, duplicates, counts.false_positives].map(|n| count(n as f64));
    Target {
        name: name.to_owned(),
        bound: bound.to_owned(),
        measured: format!("{blocks_text} = {duplicates} + {false_positives}")
            .replace('=', if blocks == expected { "=" } else { "≠" }),
        is_reached: Some(blocks == expected),
    }
}

/// Commits that failed, although nothing that was read had changed.
fn spurious(ours: &StoreResult) -> Target {
    let long = ours.long.as_ref();
    let aborts = ours.validation.as_ref().zip(long).map(|(validation, long)| {
        (validation.aborts.all() + u64::from(long.outcome != Outcome::Committed)) as f64
    });
    let flushes = long.and_then(|long| long.flushes);
    let name = match (long, flushes) {
        (Some(long), Some(flushes)) => {
            format!("spurious aborts; the long one: {:.0} s, {flushes} flushes", long.seconds)
        }
        _ => "spurious aborts".to_owned(),
    };
    let mut target = Target::new(name, "0", aborts, count, |n| n == 0.0);
    // Fewer flushes would prove little.
    target.is_reached = target.is_reached.map(|reached| reached && flushes.is_some_and(|n| n >= 5));
    target
}

#[cfg(test)]
mod tests {
    use super::super::record::{LongResult, PassResult, ValidationResult, WriteSettings};
    use super::super::store::{Aborts, ReadCounts};
    use super::*;
    use crate::machine::Machine;
    use std::path::Path;

    fn pass(workload: Workload, mean_ns: f64) -> PassResult {
        PassResult {
            workload,
            round: 0,
            ops: 1000,
            mean_ns,
            settled_ns: mean_ns,
            cpu_ns: mean_ns,
            disk_reads: None,
            duplicates: 500,
            counts: Some(ReadCounts { block_reads: 400, cache_hits: 102, false_positives: 2 }),
            aborts: Aborts::default(),
        }
    }

    fn record(passes: [(Workload, f64); 5], outcome: Outcome) -> WritesRecord {
        let store = |store, passes: Vec<PassResult>| StoreResult {
            passes,
            validation: Some(ValidationResult {
                no_reads_ns: vec![2_000.0],
                reads_ns: vec![9_000.0],
                ..ValidationResult::default()
            }),
            long: Some(LongResult {
                seconds: 60.0,
                reads: 10,
                others_rows: 100,
                flushes: Some(5),
                outcome,
                commit_ns: 1.0,
            }),
            ..StoreResult::new(store, String::new())
        };
        let ours = passes.map(|(workload, ns)| pass(workload, ns)).into();
        let peer = vec![pass(Workload::Uniform8, 3000.0)];
        WritesRecord {
            date: String::new(),
            machine: Machine::here(Path::new("/")),
            settings: WriteSettings {
                keys: 1,
                inserts: 1,
                cold_inserts: 1,
                transactions: 1,
                validations: 1,
                long_seconds: 60,
                rounds: 1,
                memtable_mib: 64,
                cache_mib: 256,
            },
            stores: vec![store(StoreKind::Ours, ours), store(StoreKind::Redb, peer)],
            notes: Vec::new(),
        }
    }

    #[test]
    fn each_target_compares_its_own_figures() {
        let passes = [
            (Workload::Put, 900.0),
            (Workload::InsertNew, 1000.0),
            (Workload::InsertHalf, 1.0),
            (Workload::InsertMany, 500.0),
            (Workload::Uniform8, 1500.0),
        ];
        let targets = record(passes, Outcome::Committed).targets();
        let measured: Vec<_> =
            targets.iter().map(|target| (target.measured.as_str(), target.is_reached)).collect();
        let expected = [
            ("0.900 ×", Some(true)),
            ("–", None),
            ("502 = 500 + 2", Some(true)),
            ("2.00 ×", Some(true)),
            ("2.00 × (redb)", Some(true)),
            ("–", None),
            ("7.00 µs", Some(true)),
            ("–", None),
            ("0", Some(true)),
        ];
        assert_eq!(measured, expected);
    }

    #[test]
    fn a_long_transaction_that_is_aborted_misses_its_target() {
        let passes = [(Workload::Put, 1.0); 5];
        let targets = record(passes, Outcome::Conflict).targets();
        let last = targets.last().unwrap();
        assert_eq!((last.measured.as_str(), last.is_reached), ("1", Some(false)));
    }
}
