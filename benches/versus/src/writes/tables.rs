//! The results as tables, for the terminal and for a page.

use super::record::{PassResult, StoreResult, WritesRecord};
use super::rows::{KEY_BYTES, VALUE_BYTES};
use super::store::Aborts;
use super::workload::Workload;
use crate::error::Result;
use crate::format::{DASH, count, nanos, number, range, shown};
use crate::table::{aligned, headed};
use crate::terminal::{self, print_notes};
use std::io::Write;

/// A table with a title.
pub struct Titled {
    /// The title.
    pub title: &'static str,
    /// The head, then the rows.
    pub rows: Vec<Vec<String>>,
}

const INSERT_HEAD: [&str; 8] = [
    "inserts, mean time of a key",
    "put",
    "insert_new",
    "min–max",
    "until settled",
    "half duplicates",
    "100 at once",
    "min–max",
];
const COLD_HEAD: [&str; 6] =
    ["inserts, cold", "insert_new", "min–max", "disk reads", "blocks read", "false positives"];
const TRANSACTION_HEAD: [&str; 10] = [
    "transactions, mean time",
    "1 thread",
    "8 threads",
    "min–max",
    "aborted",
    "zipf, 1 thread",
    "zipf, 8 threads",
    "min–max",
    "aborted",
    "CPU, zipf, 8 threads",
];
const VALIDATION_HEAD: [&str; 6] = [
    "commits, median time",
    "no reads",
    "100 absent reads",
    "no reads, flushed",
    "100 absent reads, flushed",
    "aborted",
];
const LONG_HEAD: [&str; 6] =
    ["long transaction", "outcome", "time of the commit", "length", "rows by others", "flushes"];
const TARGET_HEAD: [&str; 4] = ["sidebloom's targets", "target", "measured", "reached"];

impl WritesRecord {
    /// The machine, the sizes and the configurations.
    pub fn print_head(&self) -> Result<()> {
        terminal::print_head(&self.date, &self.machine)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", self.sizes())?;
        for of in &self.stores {
            writeln!(out, "{}: {}", of.store.name(), of.configuration)?;
        }
        Ok(())
    }

    /// The sizes, in words.
    pub fn sizes(&self) -> String {
        let settings = &self.settings;
        format!(
            "{} keys of {KEY_BYTES} bytes, values of {VALUE_BYTES} bytes; in a pass {} inserts, cold {}, or {} transactions of 4 reads and 2 \
             writes; no fsync per write; rounds: {}",
            count(settings.keys as f64),
            count(settings.inserts as f64),
            count(settings.cold_inserts as f64),
            count(settings.transactions as f64),
            settings.rounds
        )
    }

    /// All tables and notes.
    pub fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for table in self.tables() {
            writeln!(out, "\n{}\n{}", table.title, aligned(&table.rows))?;
        }
        drop(out);
        print_notes(&self.notes)
    }

    /// All tables.
    pub fn tables(&self) -> Vec<Titled> {
        let of_all = |head: &[&'static str], row: fn(&StoreResult) -> Option<Vec<String>>| {
            headed(head.iter().copied(), self.stores.iter().filter_map(row))
        };
        let targets = self.targets().into_iter().map(|target| {
            let verdict = target.verdict().to_owned();
            vec![target.name, target.bound, target.measured, verdict]
        });
        vec![
            Titled { title: "Inserts", rows: of_all(&INSERT_HEAD[..], insert_row) },
            Titled { title: "Inserts of new keys from disk", rows: of_all(&COLD_HEAD[..], cold_row) },
            Titled {
                title: "Transactions of four reads and two writes",
                rows: of_all(&TRANSACTION_HEAD[..], transaction_row),
            },
            Titled { title: "Commits of one put", rows: of_all(&VALIDATION_HEAD[..], validation_row) },
            Titled { title: "A long transaction", rows: of_all(&LONG_HEAD[..], long_row) },
            Titled { title: "Targets", rows: headed(TARGET_HEAD, targets) },
        ]
    }
}

fn mean(of: &StoreResult, workload: Workload) -> String {
    shown(of.mean_ns(workload), nanos)
}

fn extremes(of: &StoreResult, workload: Workload) -> String {
    range(&of.each(workload, |pass| Some(pass.mean_ns)), nanos)
}

fn insert_row(of: &StoreResult) -> Option<Vec<String>> {
    Some(vec![
        of.store.name().to_owned(),
        mean(of, Workload::Put),
        mean(of, Workload::InsertNew),
        extremes(of, Workload::InsertNew),
        shown(of.median(Workload::InsertNew, |pass| Some(pass.settled_ns)), nanos),
        mean(of, Workload::InsertHalf),
        mean(of, Workload::InsertMany),
        extremes(of, Workload::InsertMany),
    ])
}

fn cold_row(of: &StoreResult) -> Option<Vec<String>> {
    let per_op = |figure: fn(&PassResult) -> Option<u64>| {
        let per_op = move |pass: &PassResult| Some(figure(pass)? as f64 / pass.ops as f64);
        shown(of.median(Workload::InsertCold, per_op), number)
    };
    Some(vec![
        of.store.name().to_owned(),
        mean(of, Workload::InsertCold),
        extremes(of, Workload::InsertCold),
        shown(of.median(Workload::InsertCold, |pass| pass.disk_reads), number),
        per_op(|pass| Some(pass.counts?.block_reads)),
        per_op(|pass| Some(pass.counts?.false_positives)),
    ])
}

fn transaction_row(of: &StoreResult) -> Option<Vec<String>> {
    of.store.has_transactions().then(|| {
        vec![
            of.store.name().to_owned(),
            mean(of, Workload::Uniform1),
            mean(of, Workload::Uniform8),
            extremes(of, Workload::Uniform8),
            aborted(of.aborts(Workload::Uniform8)),
            mean(of, Workload::Zipf1),
            mean(of, Workload::Zipf8),
            extremes(of, Workload::Zipf8),
            aborted(of.aborts(Workload::Zipf8)),
            shown(of.median(Workload::Zipf8, |pass| Some(pass.cpu_ns)), nanos),
        ]
    })
}

fn validation_row(of: &StoreResult) -> Option<Vec<String>> {
    let validation = of.validation.as_ref()?;
    let medians = validation.medians().map(|median| shown(median, nanos));
    let name = of.store.name().to_owned();
    Some([name].into_iter().chain(medians).chain([aborted(validation.aborts)]).collect())
}

fn long_row(of: &StoreResult) -> Option<Vec<String>> {
    let name = of.store.name().to_owned();
    let Some(long) = &of.long else {
        let waits = of.store.has_transactions() && !of.store.is_optimistic();
        let outcome = "not run: others could not write during it".to_owned();
        let dashes = [DASH, DASH, DASH, DASH].map(str::to_owned);
        return waits.then(|| [name, outcome].into_iter().chain(dashes).collect());
    };
    Some(vec![
        name,
        long.outcome.name().to_owned(),
        nanos(long.commit_ns),
        format!("{:.1} s", long.seconds),
        count(long.others_rows as f64),
        long.flushes.map_or(DASH.to_owned(), |flushes| flushes.to_string()),
    ])
}

/// Attempts that were not committed, by kind.
fn aborted(aborts: Aborts) -> String {
    let kinds = [(aborts.conflict, "Conflict"), (aborts.busy, "Busy"), (aborts.try_again, "TryAgain")];
    let counted = kinds.iter().filter(|(n, _)| *n > 0);
    let text: Vec<_> = counted.map(|(n, kind)| format!("{} {kind}", count(*n as f64))).collect();
    if text.is_empty() { "0".to_owned() } else { text.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aborts_are_counted_by_their_kinds() {
        assert_eq!(aborted(Aborts::default()), "0");
        let aborts = Aborts { conflict: 0, busy: 1200, try_again: 3 };
        assert_eq!(aborted(aborts), "1,200 Busy, 3 TryAgain");
    }
}
