//! The measures of the table in `docs/measured.md`, and in which of them sidebloom is ahead or behind.

use crate::engine::EngineKind;
use crate::format::{bytes, count, nanos, number, shown};
use crate::results::BenchRecord;
use crate::task::WorkerOutcome;

/// The measures that decide which engine fits, by their names.
pub const DECIDING: [&str; 6] = [
    "missing key, mean",
    "missing key, cold",
    "found key, mean",
    "found key, cold",
    "load, settled: rows",
    "size on disk",
];

/// Figures within this share of each other count as level: rounds differ by as much.
const LEVEL: f64 = 0.05;

/// Which figures are better.
#[derive(Clone, Copy, PartialEq)]
enum Better {
    Less,
    More,
}

/// A measure.
pub struct Measure {
    /// Its name in the table.
    pub name: String,
    workload: &'static str,
    better: Better,
    show: fn(f64) -> String,
    figure: fn(&WorkerOutcome) -> Option<f64>,
}

/// How sidebloom compares with the best other engine in a measure.
pub struct Standing {
    /// The name of the measure.
    pub name: String,
    /// The best other engine.
    pub best: EngineKind,
    /// How many times better sidebloom is; below 1 it is worse.
    pub times: f64,
}

fn per_second(x: f64) -> String {
    format!("{} /s", number(x))
}

fn less(
    name: impl Into<String>,
    workload: &'static str,
    show: fn(f64) -> String,
    figure: fn(&WorkerOutcome) -> Option<f64>,
) -> Measure {
    Measure { name: name.into(), workload, better: Better::Less, show, figure }
}

fn more(
    name: impl Into<String>,
    workload: &'static str,
    figure: fn(&WorkerOutcome) -> Option<f64>,
) -> Measure {
    Measure { name: name.into(), workload, better: Better::More, show: per_second, figure }
}

/// All measures, in the order of the table.
pub fn all(run: &BenchRecord) -> Vec<Measure> {
    let settings = &run.settings;
    let (rows, misses) = (count(settings.rows as f64), count(settings.cold_reads as f64));
    let (row_bytes, written) = (settings.row_bytes, count(settings.written as f64));
    let rate = |o: &WorkerOutcome| Some(o.ops_per_second);
    let mean = |o: &WorkerOutcome| Some(o.mean_ns);
    let memory = WorkerOutcome::all_memory_bytes;
    let measures = vec![
        less("missing key, mean", "readmissing", nanos, mean),
        less("missing key, p50", "readmissing", nanos, |o| Some(o.p50_ns)),
        less("missing key, p99.9", "readmissing", nanos, |o| Some(o.p999_ns)),
        less("32 missing keys at once, each", "multireadmissing", nanos, mean),
        less("found key, mean", "readrandom", nanos, mean),
        less("found key, p99.9", "readrandom", nanos, |o| Some(o.p999_ns)),
        less("found key: memory, page cache included", "readrandom", bytes, memory),
        less("missing key, cold", "readmissing-cold", nanos, mean),
        less("missing key, cold: disk reads", "readmissing-cold", number, |o| o.disk_reads_per_op),
        less("found key, cold", "readrandom-cold", nanos, mean),
        less("found key, cold: bytes read", "readrandom-cold", bytes, |o| Some(o.disk_bytes_per_op)),
        less("found key, cold: memory, page cache included", "readrandom-cold", bytes, memory),
        less("32 found keys at once, cold, each", "multireadrandom-cold", nanos, mean),
        less("open and first missing key, cold", "open-miss-cold", nanos, mean),
        less(format!("open and first {misses} missing keys, cold"), "open-misses-cold", nanos, mean),
        more("load, settled: rows", "load", |o| o.settled_per_second),
        less("load: CPU", "load", nanos, |o| o.load_cpu_seconds.map(|seconds| seconds * 1e9)),
        less("load: bytes written per byte", "load", number, |o| o.write_amplification),
        less("size on disk", "load", bytes, |o| Some(o.disk_bytes as f64)),
        more("scan: rows", "scan", rate),
        more(format!("100 rows of {row_bytes} B from a random key"), "rows-range", rate),
        more(format!("100 rows of {row_bytes} B, the 5,000 before skipped"), "rows-range-skip", rate),
        more(format!("pass over {rows} rows of {row_bytes} B: rows"), "rows-scan", rate),
        more(format!("pass over the keys of {rows} rows: keys"), "rows-keys", rate),
        more("just written: the first 100 rows", "written-first", rate),
        more("just written, 8 threads: the first 100 rows", "written-first-threads", rate),
        more("just written: the 100 rows after 5,000", "written-first-skip", rate),
        more("just written, 8 threads: the 100 rows after 5,000", "written-first-skip-threads", rate),
        more(format!("just written: count of {written} rows"), "written-count", rate),
        more(format!("just written, 8 threads: count of {written} rows"), "written-count-threads", rate),
        more("just written: found keys, 1,000 at once", "written-multireadrandom", rate),
        more("just written, 8 threads: found keys, 1,000 at once", "written-multireadrandom-threads", rate),
        more("8 threads: found keys", "rows-read-threads", rate),
        more("8 threads: single puts", "rows-put-threads", rate),
        less("found key while another thread writes, p99.9", "readwhilewriting", nanos, |o| Some(o.p999_ns)),
        less("resident memory after that, mapped pages included", "readwhilewriting", bytes, |o| {
            Some(o.resident_bytes() as f64)
        }),
    ];
    measures.into_iter().filter(|measure| run.has(measure.workload)).collect()
}

impl Measure {
    fn value(&self, run: &BenchRecord, engine: EngineKind) -> Option<f64> {
        run.median(engine, self.workload, self.figure)
    }

    /// Whether it is one of [`DECIDING`].
    pub fn decides(&self) -> bool {
        DECIDING.contains(&&*self.name)
    }

    /// The figure of an engine, as text.
    pub fn cell(&self, run: &BenchRecord, engine: EngineKind) -> String {
        shown(self.value(run, engine), self.show)
    }

    /// How sidebloom compares with the best other engine; `None` if either has no figure.
    pub fn standing(&self, run: &BenchRecord) -> Option<Standing> {
        let ours = self.value(run, EngineKind::Sidebloom)?;
        let others = run.engines.iter().map(|(kind, _)| *kind).filter(|kind| !kind.is_sidebloom());
        let times = |(best, theirs): (EngineKind, f64)| {
            let times = if self.better == Better::Less { theirs / ours } else { ours / theirs };
            Standing { name: self.name.clone(), best, times }
        };
        // 0 by 0, such as two engines that never read the disk, is a draw.
        let draw = |standing: Standing| Standing {
            times: if standing.times.is_nan() { 1.0 } else { standing.times },
            ..standing
        };
        let all = others.filter_map(|kind| Some((kind, self.value(run, kind)?)));
        all.map(times).map(draw).min_by(|a, b| a.times.total_cmp(&b.times))
    }
}

/// Three lists in words: where sidebloom beats every other engine, is level with the best, and loses.
pub fn standings(run: &BenchRecord) -> [Vec<String>; 3] {
    let (mut ahead, mut level, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for one in all(run).iter().filter_map(|measure| measure.standing(run)) {
        let text = format!("{} ({} × {})", one.name, number(one.times), one.best.name());
        if one.times > 1.0 + LEVEL {
            ahead.push(text);
        } else if one.times < 1.0 / (1.0 + LEVEL) {
            behind.push(text);
        } else {
            level.push(text);
        }
    }
    [ahead, level, behind]
}
