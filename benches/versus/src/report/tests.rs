//! Charts and tables of made-up results.

use super::charts;
use crate::engine::{EngineFacts, EngineKind};
use crate::limit::CgroupUsage;
use crate::machine::Machine;
use crate::results::{BenchRecord, Measured, SweepRecord};
use crate::settings::BenchSettings;
use crate::task::WorkerOutcome;
use crate::workload::{self, CacheState};
use crate::{pages, sweep, workload_table};
use std::path::Path;

const ENGINES: [EngineKind; 3] = [EngineKind::Rocksdb, EngineKind::Sidebloom, EngineKind::Lmdb];

fn run(flags: &str, outcome: impl Fn(EngineKind, &str) -> WorkerOutcome) -> BenchRecord {
    let settings = BenchSettings::of_flags(flags);
    let workloads = ["count", "readrandom", "readmissing", "readmissing-cold", "readmissing-limited"];
    let each = |workload: &'static str| ENGINES.map(|kind| (kind, workload));
    let results = workloads.into_iter().flat_map(each).map(|(engine, workload)| Measured {
        engine,
        workload: workload.to_owned(),
        round: 0,
        outcome: outcome(engine, workload),
    });
    BenchRecord {
        date: "2026-01-01".to_owned(),
        seconds: 1.0,
        machine: Machine::here(Path::new("/")),
        engines: ENGINES.map(|kind| (kind, String::new())).to_vec(),
        rounds: 1,
        notes: Vec::new(),
        results: results.collect(),
        settings,
    }
}

fn plain(kind: EngineKind, _: &str) -> WorkerOutcome {
    let filter_bytes = (kind == EngineKind::Sidebloom).then_some(1 << 20);
    WorkerOutcome {
        ops: 1000,
        mean_ns: 500.0,
        disk_reads_per_op: Some(0.0),
        memory_bytes: 10 << 20,
        mapped_bytes: 2 << 20,
        facts: EngineFacts { filter_bytes, ..EngineFacts::default() },
        ..WorkerOutcome::default()
    }
}

#[test]
fn charts_and_tables_of_a_sweep_show_its_figures() {
    let by_runs = [1, 4, 16].map(|runs| {
        let mut run = run("", plain);
        run.settings.runs = runs;
        run
    });
    let by_keys = ["250000", "1000000"].map(|num| run(&format!("--num {num}"), plain));
    let found = SweepRecord { by_runs: by_runs.to_vec(), by_keys: by_keys.to_vec() };
    let pictures = charts::of_sweep(&found).unwrap();
    assert_eq!(pictures.len(), 5);
    // 1, 4 and 16 are two doublings apart. The labels between them are powers of two.
    let labels = |svg: &str| -> Vec<String> {
        let text = svg.split("<text").skip(1).filter_map(|part| part.split_once('>')?.1.split_once('<'));
        text.map(|(label, _)| label.trim().to_owned()).collect()
    };
    let of_runs = labels(&pictures[0]);
    assert!(
        ["1", "4", "16", "sorted runs", "sidebloom"].iter().all(|one| of_runs.iter().any(|l| l == one)),
        "{of_runs:?}"
    );
    assert!(labels(&pictures[3]).iter().any(|label| label == "1,000,000"));
    let tables = sweep::tables(&found);
    let row = |title: &str| tables.iter().find(|(one, _)| one.contains(title)).unwrap().1[2].clone();
    assert_eq!(row("resident memory"), ["sidebloom", "12.0 MiB", "12.0 MiB"]);
    let (_, filters) = tables.iter().find(|(title, _)| *title == "filter memory").unwrap();
    assert_eq!(filters.len(), 2, "engines without filters have no row: {filters:?}");
}

#[test]
fn sorted_runs_are_shown_by_level() {
    let run = run("", |kind, workload| {
        let runs_by_level = kind.has_runs().then(|| vec![3, 0, 1]);
        let facts = EngineFacts { runs_by_level, ..EngineFacts::default() };
        assert_eq!(facts.runs(), kind.has_runs().then_some(4));
        WorkerOutcome { facts, ..plain(kind, workload) }
    });
    let rows = workload_table::rows(&run, "count");
    assert_eq!(rows[0][1], "runs by level");
    assert_eq!([&rows[2][1], &rows[3][1]], ["L0 3, L2 1", "–"]);
}

#[test]
fn stores_just_written_show_their_runs_at_start_and_memory() {
    let mut run = run("--written 5000", |kind, workload| {
        let of = |runs| EngineFacts {
            runs_by_level: kind.has_runs().then_some(runs),
            memtable_bytes: kind.has_runs().then_some(3 << 20),
            ..EngineFacts::default()
        };
        let (at_start, facts) = (Some(of(vec![5, 1])), of(vec![0, 0]));
        WorkerOutcome { at_start, facts, page_cache_bytes: Some(30 << 20), ..plain(kind, workload) }
    });
    run.results.iter_mut().for_each(|one| one.workload = one.workload.replace("readrandom", "written-count"));
    let rows = workload_table::rows(&run, "written-count");
    let cells = |row: usize, names: [&str; 4]| {
        let column = |name: &str| rows[0].iter().position(|head| head == name).unwrap();
        names.map(|name| rows[row][column(name)].clone())
    };
    let names = ["runs at start", "memtables at start", "runs at end", "memory"];
    assert_eq!(cells(2, names), ["L0 5, L1 1", "3.00 MiB", "none", "40.0 MiB"]);
    assert_eq!(cells(3, names), ["–", "–", "–", "40.0 MiB"]);
    assert_eq!(cells(3, ["data", "own memory", "page cache", "mapped"])[..2], ["plain, mapped", "10.0 MiB"]);
    let about = workload_table::about(&run, &workload::by_name("written-count").unwrap()).unwrap();
    assert!(about.contains("5,000 rows of 1,024 bytes"), "{about}");
    let text = pages::section(&run);
    assert!(text.contains("| sorted runs by level, just written | L0 5, L1 1 | L0 5, L1 1 | – |"), "{text}");
    assert!(
        text.contains("| data | LZ4, own cache | FSST, mapped, or LZ4, own cache | plain, mapped |"),
        "{text}"
    );
}

#[test]
fn the_pages_name_sizes_wins_and_losses() {
    let run = run("", |kind, workload| {
        // sidebloom is four times as fast as the next on missing keys, half as fast as LMDB on present ones.
        let mean_ns = match (kind, workload) {
            (EngineKind::Sidebloom, "readmissing") => 100.0,
            (EngineKind::Lmdb, "readrandom") => 250.0,
            (EngineKind::Lmdb, _) => 400.0,
            _ => 500.0,
        };
        WorkerOutcome { mean_ns, ..plain(kind, workload) }
    });
    let text = pages::section(&run);
    assert!(text.contains("10,000,000 keys of 24 bytes") && text.contains("memtable 64 MiB"), "{text}");
    let line = |title: &str| text.lines().find(|line| line.starts_with(title)).unwrap().to_owned();
    assert!(line("**Ahead").contains("missing key, mean (4.00 × lmdb)"), "{text}");
    assert!(line("**Behind").contains("found key, mean (0.500 × lmdb)"), "{text}");
    assert!(line("**Level").contains("missing key, cold: disk reads (1.00 ×"), "{text}");
    assert_eq!(line("| missing key, mean"), "| missing key, mean | 500 ns | **100 ns** | 400 ns |");
    // The charts are next to docs/measured.md.
    assert!(text.contains("](missing.svg)") && text.contains("](disk-reads.svg)"), "{text}");

    let short = pages::summary(&run);
    assert!(short.contains("found key, mean (0.500 × lmdb)") && !short.contains("4.00 ×"), "{short}");
    assert!(
        short.contains("10,000,000 keys of 24 bytes") && short.contains("one round, 2026-01-01"),
        "{short}"
    );
    let rows: Vec<&str> = short.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows[1], line("| missing key, mean"));
    assert_eq!(rows.len(), 4, "a head, and those of the deciding measures that were measured: {short}");
}

#[test]
fn zero_disk_reads_are_drawn_as_one_read_in_all_calls() {
    let mut one = run("", plain);
    one.settings.runs = 1;
    let found = SweepRecord { by_runs: vec![one], by_keys: Vec::new() };
    let picture =
        charts::of_sweep(&found).unwrap().into_iter().find(|svg| svg.contains("Disk reads")).unwrap();
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
    assert!(picture.contains("0.00100"), "one read in 1000 calls");
}

#[test]
fn rejected_rounds_show_dashes_and_disturbed_rounds_are_marked() {
    let usage = CgroupUsage { own_bytes: 16 << 20, page_cache_bytes: 13 << 20, ..CgroupUsage::default() };
    let run = run("--num 1000000", |kind, workload| WorkerOutcome {
        rejected: (kind == EngineKind::Lmdb).then(|| "it needs more".to_owned()),
        others: Some(if workload == "readmissing" { 1.5 } else { 0.0 }),
        limited: Some(usage),
        ..plain(kind, workload)
    });
    let rows = workload_table::rows(&run, "readmissing-limited");
    assert!(
        rows[0].contains(&"page cache".to_owned()) && rows[1].contains(&"13.0 MiB".to_owned()),
        "{rows:?}"
    );
    assert!(rows[3][1..].iter().all(|cell| cell == "–"), "{rows:?}");
    assert!(!rows[0].contains(&"others' CPUs".to_owned()));
    assert!(workload_table::rows(&run, "readmissing")[0].contains(&"others' CPUs".to_owned()));
    assert_eq!(run.rejections().count(), 5);
    assert!(run.disturbance().is_some_and(|text| text.contains("2 of 10 measurements, at most 1.50")));
    let limited = workload::by_name("readmissing-limited").unwrap();
    assert_eq!(limited.cache, CacheState::Limited);
    let about = workload_table::about(&run, &limited).unwrap();
    assert!(about.contains("29.6 MiB") && about.contains("14 MiB"), "{about}");
    assert!(charts::against_missing(&run, CacheState::Limited).unwrap().is_some());
}
