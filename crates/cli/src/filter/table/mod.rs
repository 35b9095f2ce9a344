//! `sidebloom filter table`: measures every kind of filter, or prints the sizes that the formulas give.

mod keys;
mod measure;
mod sizes;

use crate::context::{Context, Failure, Outcome};
use crate::{human, progress};
use keys::Look;
use measure::{Keys, Row, bloom, counting, of_lines};
use sidebloom::filter::{FilterSpec, Isa, Width};
use std::io::Write;

/// Measure the kinds of filters, or print the sizes that the formulas give
///
/// For each kind: bits per key; false-positive rate, expected and measured; cache lines read per probe of an
/// absent key; time per such probe on one thread, from precomputed hashes and for each instruction set of
/// this machine (for bloom and counting: from the keys, including the hash); build time per key, from hashes.
/// Prints each row as soon as it is measured. With 100 K keys the filters fit into L2, with 1 M into L2 or
/// L3. With 100 M, most probes are cache misses, and the table takes 3 GB of memory and a few minutes, most
/// of them for bloom and counting.
#[derive(clap::Args)]
pub struct Args {
    /// Keys in each filter
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    keys: u64,
    /// Measure this kind only; may be repeated [default: all]
    #[arg(long, value_enum)]
    kind: Vec<MeasuredKind>,
    /// What the keys look like
    #[arg(long, value_enum, value_name = "LOOK", default_value_t = Look::Integers)]
    of: Look,
    /// Print bits and k of a Bloom filter for rates of 1% to 0.0001% and 1 K to 1 M keys instead
    #[arg(long, conflicts_with_all = ["keys", "kind", "of"])]
    sizes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MeasuredKind {
    /// All widths of the parity filter
    Parity,
    #[value(name = "parity-7")]
    Parity7,
    #[value(name = "parity-8")]
    Parity8,
    #[value(name = "parity-9")]
    Parity9,
    #[value(name = "parity-12")]
    Parity12,
    #[value(name = "parity-16")]
    Parity16,
    /// Blocked Bloom filters of 8, 10, 12 and 16 bits per key
    Blocked,
    /// Classic Bloom filters for 1 % and 0.1 %
    Bloom,
    /// A counting Bloom filter for 1 %
    Counting,
}

/// One row to be measured.
enum Task {
    Lines(FilterSpec),
    Bloom(f64),
    Counting(f64),
}

impl MeasuredKind {
    fn tasks(self) -> Vec<Task> {
        let parity = |widths: &[Width]| {
            widths.iter().map(|&width| Task::Lines(FilterSpec::Parity { width })).collect()
        };
        let blocked = |bits_per_key| Task::Lines(FilterSpec::BlockedBloom { bits_per_key });
        match self {
            MeasuredKind::Parity => parity(&Width::ALL),
            MeasuredKind::Parity7 => parity(&[Width::Seven]),
            MeasuredKind::Parity8 => parity(&[Width::Eight]),
            MeasuredKind::Parity9 => parity(&[Width::Nine]),
            MeasuredKind::Parity12 => parity(&[Width::Twelve]),
            MeasuredKind::Parity16 => parity(&[Width::Sixteen]),
            MeasuredKind::Blocked => [8.0, 10.0, 12.0, 16.0].map(blocked).into(),
            MeasuredKind::Bloom => [0.01, 0.001].map(Task::Bloom).into(),
            MeasuredKind::Counting => vec![Task::Counting(0.01)],
        }
    }
}

impl Args {
    pub fn run(self, cx: &Context) -> Result<Outcome, Failure> {
        if self.sizes {
            return sizes::print(cx);
        }
        let kinds = match &self.kind[..] {
            [] => &[MeasuredKind::Parity, MeasuredKind::Blocked, MeasuredKind::Bloom, MeasuredKind::Counting],
            chosen => chosen,
        };
        let tasks: Vec<Task> = kinds.iter().flat_map(|kind| kind.tasks()).collect();
        let keys = Keys { count: self.keys, look: self.of };
        if !cx.json {
            print(cx, &header())?;
        }
        let bar = progress::bar("measuring", tasks.len() as u64);
        let mut hashes = None;
        for task in tasks {
            if !matches!(task, Task::Lines(_)) {
                hashes = None; // 800 MB for 100 M keys
            }
            let row = match task {
                Task::Lines(spec) => of_lines(spec, keys, hashes.get_or_insert_with(|| keys.hashes()))?,
                Task::Bloom(fpr) => bloom(keys, fpr)?,
                Task::Counting(fpr) => counting(keys, fpr)?,
            };
            bar.inc(1);
            bar.suspend(|| if cx.json { cx.print_json(&row) } else { print(cx, &cells(&row)) })?;
        }
        bar.finish_and_clear();
        Ok(Outcome::Found)
    }
}

fn header() -> Vec<String> {
    let before = ["bits/key", "FPR expected", "FPR measured", "lines/probe"];
    let isas = Isa::available().map(|isa| format!("ns, {}", isa.name()));
    let named = ["kind"].into_iter().chain(before).map(str::to_owned);
    named.chain(isas).chain(["build ns/key".to_owned()]).collect()
}

fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![
        row.kind.clone(),
        format!("{:.3}", row.bits_per_key),
        human::percent(row.expected_fpr, 1.0),
        human::percent(row.measured_fpr, 1.0),
        format!("{:.3}", row.lines_per_probe),
    ];
    cells.extend(Isa::available().map(|isa| {
        let time = row.probe_ns.iter().find(|time| time.isa == isa.name());
        time.map_or("–".to_owned(), |time| format!("{:.1}", time.ns))
    }));
    cells.push(format!("{:.0}", row.build_ns_per_key));
    cells
}

/// Prints and flushes one line, so each row appears as soon as it is measured.
fn print(cx: &Context, cells: &[String]) -> Result<(), Failure> {
    let mut out = cx.out();
    for (i, cell) in cells.iter().enumerate() {
        match i {
            0 => write!(out, "{cell:<18}")?,
            _ => write!(out, " {cell:>12}")?,
        }
    }
    writeln!(out)?;
    Ok(out.flush()?)
}
