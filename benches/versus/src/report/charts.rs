//! The charts of each kind of result.

use super::plot::{PlotAxis, PlotSeries, bars, lines};
use crate::engine::EngineKind;
use crate::error::Result;
use crate::format::{bytes, count, nanos, number};
use crate::results::{BenchRecord, FiltersRecord, SweepRecord};
use crate::task::WorkerOutcome;
use crate::workload::CacheState;
use plotters::style::RGBColor;

const SHARES: [(&str, &str); 5] = [
    ("0 %", "readrandom"),
    ("50 %", "mixed50"),
    ("90 %", "mixed90"),
    ("99 %", "mixed99"),
    ("100 %", "readmissing"),
];
const PALETTE: [RGBColor; 11] = [
    RGBColor(47, 129, 247),
    RGBColor(217, 130, 43),
    RGBColor(63, 160, 80),
    RGBColor(226, 80, 73),
    RGBColor(150, 110, 230),
    RGBColor(140, 140, 140),
    RGBColor(30, 160, 170),
    RGBColor(219, 97, 162),
    RGBColor(184, 160, 40),
    RGBColor(140, 90, 60),
    RGBColor(40, 110, 90),
];

fn color(kind: EngineKind) -> RGBColor {
    match kind {
        EngineKind::Sidebloom => PALETTE[0],
        EngineKind::RocksdbBloom => PALETTE[1],
        EngineKind::Fjall => PALETTE[2],
        EngineKind::Redb => PALETTE[3],
        EngineKind::Lmdb => PALETTE[4],
        EngineKind::Rocksdb => PALETTE[5],
        EngineKind::SidebloomNofilter => PALETTE[6],
        EngineKind::RocksdbRibbon => PALETTE[7],
        EngineKind::Libmdbx => PALETTE[8],
        EngineKind::Candystore => PALETTE[9],
        EngineKind::SidebloomPlain => PALETTE[10],
    }
}

fn time(name: &'static str) -> PlotAxis {
    PlotAxis { name, log: true, show: Box::new(nanos) }
}

fn percent(x: f64) -> String {
    format!("{} %", number(x))
}

/// All charts for which there are figures.
pub fn of_run(run: &BenchRecord) -> Result<Vec<String>> {
    let pictures = [
        against_missing(run, CacheState::Warm)?,
        against_missing(run, CacheState::Cold)?,
        against_missing(run, CacheState::Limited)?,
        disk_reads(run)?,
        figure_bars(
            run,
            "readmissing-cold",
            "Bytes read from disk per lookup of a missing key",
            bytes,
            |o| Some(o.disk_bytes_per_op),
        )?,
        curve(run, "readmissing", "Lookup latency of missing keys, in memory")?,
        curve(run, "readrandom", "Lookup latency of present keys, in memory")?,
        curve(run, "readmissing-cold", "Lookup latency of missing keys, on disk")?,
        figure_bars(run, "count", "Filter memory, bits per key", number, |o| {
            o.filter_bits_per_key(run.settings.num)
        })?,
        figure_bars(
            run,
            "readrandom",
            "Memory of lookups of present keys, page cache included, all data in memory",
            bytes,
            WorkerOutcome::all_memory_bytes,
        )?,
        figure_bars(run, "load", "Bytes written per byte loaded, in random order", number, |o| {
            o.write_amplification
        })?,
    ];
    Ok(pictures.into_iter().flatten().collect())
}

/// The label of a position. Shares are equally spaced, because most of the change is near 100 %.
fn share_at(place: f64) -> String {
    let near = (place - place.round()).abs() < 0.01;
    let share = SHARES.get(place.round().max(0.0) as usize).filter(|_| near);
    share.map_or(String::new(), |(share, _)| (*share).to_owned())
}

/// Mean lookup time by share of missing keys.
pub fn against_missing(run: &BenchRecord, memory: CacheState) -> Result<Option<String>> {
    let (suffix, title) = match memory {
        CacheState::Warm => ("", "Mean lookup time, data in memory"),
        CacheState::Cold => ("-cold", "Mean lookup time, data on disk"),
        CacheState::Limited => ("-limited", "Mean lookup time, in limited memory"),
    };
    let series = run.engines.iter().map(|&(kind, _)| {
        let point = |(place, (_, name)): (usize, (&str, &str))| {
            Some((place as f64, run.median(kind, &format!("{name}{suffix}"), |o| Some(o.mean_ns))?))
        };
        series_of(kind, SHARES.into_iter().enumerate().filter_map(point).collect())
    });
    let series: Vec<PlotSeries> = series.filter(|one| !one.points.is_empty()).collect();
    let share = PlotAxis { name: "share of missing keys", log: false, show: Box::new(share_at) };
    if series.is_empty() {
        Ok(None)
    } else {
        lines(title, &share, &time("mean, logarithmic"), true, &series).map(Some)
    }
}

/// Disk reads per lookup of a missing key.
pub fn disk_reads(run: &BenchRecord) -> Result<Option<String>> {
    figure_bars(run, "readmissing-cold", "Disk reads per lookup of a missing key", number, |o| {
        o.disk_reads_per_op
    })
}

fn series_of(kind: EngineKind, points: Vec<(f64, f64)>) -> PlotSeries {
    PlotSeries {
        name: kind.name().to_owned(),
        color: color(kind),
        strong: kind == EngineKind::Sidebloom,
        points,
    }
}

fn figure_bars(
    run: &BenchRecord,
    workload: &str,
    title: &str,
    show: fn(f64) -> String,
    figure: impl Fn(&WorkerOutcome) -> Option<f64>,
) -> Result<Option<String>> {
    let bar =
        |kind: EngineKind| Some((kind.name().to_owned(), color(kind), run.median(kind, workload, &figure)?));
    let all: Vec<_> = run.engines.iter().filter_map(|(kind, _)| bar(*kind)).collect();
    if all.is_empty() { Ok(None) } else { bars(title, show, &all).map(Some) }
}

/// The share of calls answered within a time.
fn curve(run: &BenchRecord, workload: &str, title: &str) -> Result<Option<String>> {
    let series = run.engines.iter().map(|&(kind, _)| {
        let quantiles = run
            .results
            .iter()
            .find(|one| one.workload == workload)
            .map(|one| one.outcome.curve.as_slice())
            .unwrap_or(&[]);
        let point = |i: usize| {
            let ns = run.median(kind, workload, |o| o.curve.get(i).map(|(_, ns)| *ns))?;
            Some((ns, 100.0 * quantiles[i].0))
        };
        // The last two points are individual calls.
        series_of(kind, (0..quantiles.len().saturating_sub(2)).filter_map(point).collect())
    });
    let series: Vec<PlotSeries> = series.filter(|one| !one.points.is_empty()).collect();
    let share = PlotAxis { name: "calls answered", log: false, show: Box::new(percent) };
    if series.is_empty() {
        Ok(None)
    } else {
        lines(title, &time("within, logarithmic"), &share, true, &series).map(Some)
    }
}

/// Cost by number of sorted runs, and memory by number of keys.
pub fn of_sweep(found: &SweepRecord) -> Result<Vec<String>> {
    let by_runs = |title, workload: &str, axis: PlotAxis, figure: fn(&WorkerOutcome) -> Option<f64>| {
        let first = found.by_runs.first().map_or(1, |run| run.settings.runs);
        let x = doubling("sorted runs", first, count);
        along(title, &found.by_runs, |run| run.settings.runs, &x, &axis, workload, figure)
    };
    let by_keys = |title, workload: &str, figure: fn(&WorkerOutcome) -> Option<f64>| {
        let first = found.by_keys.first().map_or(1, |run| run.settings.num);
        let x = doubling("keys", first, count);
        let y = PlotAxis { name: "logarithmic", log: true, show: Box::new(bytes) };
        along(title, &found.by_keys, |run| run.settings.num, &x, &y, workload, figure)
    };
    // A logarithmic axis has no place for zero reads, so they are drawn as one read in all calls.
    let disk_reads = |o: &WorkerOutcome| Some(o.disk_reads_per_op?.max(1.0 / o.ops as f64));
    let reads = PlotAxis { name: "reads, logarithmic", log: true, show: Box::new(number) };
    let pictures = [
        by_runs(
            "Lookup time of a missing key in memory, by number of sorted runs",
            "readmissing",
            time("mean, logarithmic"),
            |o| Some(o.mean_ns),
        )?,
        by_runs(
            "Disk reads per lookup of a missing key, by number of sorted runs",
            "readmissing-cold",
            reads,
            disk_reads,
        )?,
        by_runs(
            "Lookup time of a present key in memory, by number of sorted runs",
            "readrandom",
            time("mean, logarithmic"),
            |o| Some(o.mean_ns),
        )?,
        by_keys("Resident memory by number of keys, block cache of 32 MiB", "readrandom", |o| {
            Some(o.resident_bytes() as f64)
        })?,
        by_keys("Filter memory by number of keys", "count", |o| o.filter_bytes())?,
    ];
    Ok(pictures.into_iter().flatten().collect())
}

/// An axis of doublings, counted from `first`. Whole doublings have a label.
fn doubling(name: &'static str, first: u64, show: fn(f64) -> String) -> PlotAxis {
    let label = move |doublings: f64| {
        let whole = (doublings - doublings.round()).abs() < 0.01;
        if whole { show(first as f64 * doublings.round().exp2()) } else { String::new() }
    };
    PlotAxis { name, log: false, show: Box::new(label) }
}

/// A figure of each engine by the number that the measurements differ in.
fn along(
    title: &str,
    runs: &[BenchRecord],
    differ: impl Fn(&BenchRecord) -> u64,
    x: &PlotAxis,
    y: &PlotAxis,
    workload: &str,
    figure: impl Fn(&WorkerOutcome) -> Option<f64>,
) -> Result<Option<String>> {
    let Some(first) = runs.first() else { return Ok(None) };
    let point = |kind: EngineKind, run: &BenchRecord| {
        let doublings = (differ(run) as f64 / differ(first) as f64).log2();
        Some((doublings, run.median(kind, workload, &figure)?))
    };
    let series = first
        .engines
        .iter()
        .map(|&(kind, _)| series_of(kind, runs.iter().filter_map(|run| point(kind, run)).collect()));
    let series: Vec<PlotSeries> = series.filter(|one| !one.points.is_empty()).collect();
    if series.is_empty() { Ok(None) } else { lines(title, x, y, true, &series).map(Some) }
}

/// False-positive rate by bits per key, one color per filter.
pub fn of_filters(arena: &FiltersRecord) -> Result<Option<String>> {
    let mut series: Vec<PlotSeries> = Vec::new();
    for result in arena.results.iter().filter(|result| result.fpr > 0.0) {
        let name = result.name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
        let point = (result.bits_per_key, 100.0 * result.fpr);
        match series.iter_mut().find(|one| one.name == name) {
            Some(one) => one.points.push(point),
            None => series.push(PlotSeries {
                name: name.to_owned(),
                color: PALETTE[series.len() % PALETTE.len()],
                strong: name.starts_with("Parity"),
                points: vec![point],
            }),
        }
    }
    let bits = PlotAxis { name: "bits per key", log: false, show: Box::new(number) };
    let wrong = PlotAxis { name: "false positives, logarithmic", log: true, show: Box::new(percent) };
    if series.is_empty() {
        Ok(None)
    } else {
        lines("False-positive rate by size", &bits, &wrong, false, &series).map(Some)
    }
}
