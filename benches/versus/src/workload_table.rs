//! The results of a workload as a table.

use crate::engine::EngineKind;
use crate::format::{self, DASH, bytes, count, nanos, number, percent, shown, times};
use crate::limit::CgroupUsage;
use crate::quiet::DISTURBING;
use crate::results::BenchRecord;
use crate::table::headed;
use crate::task::WorkerOutcome;
use crate::workload::{self, CacheState, StoreRole, WorkloadKind, WorkloadSpec};

/// The rows of a workload's table, its header first. An engine without accepted rounds has dashes.
pub fn rows(run: &BenchRecord, workload: &str) -> Vec<Vec<String>> {
    let mut columns = columns(run, workload);
    let others = |o: &WorkerOutcome| o.others;
    if run.engines.iter().any(|(kind, _)| run.median(*kind, workload, others) > Some(DISTURBING)) {
        columns.push(column("others' CPUs", number, others));
    }
    let row = |(engine, _): &(EngineKind, String)| {
        let name = std::iter::once(engine.name().to_owned());
        name.chain(columns.iter().map(|column| (column.1)(run, *engine, workload))).collect()
    };
    let head = std::iter::once("engine").chain(columns.iter().map(|column| column.0));
    headed(head, run.engines.iter().map(row))
}

type ResultColumn = (&'static str, Box<dyn Fn(&BenchRecord, EngineKind, &str) -> String>);

fn column(
    name: &'static str,
    show: fn(f64) -> String,
    figure: impl Fn(&WorkerOutcome) -> Option<f64> + 'static,
) -> ResultColumn {
    (name, Box::new(move |run, engine, workload| shown(run.median(engine, workload, &figure), show)))
}

fn columns(run: &BenchRecord, workload: &str) -> Vec<ResultColumn> {
    let Some(spec) = workload::by_name(workload) else { return Vec::new() };
    match spec.kind {
        WorkloadKind::Count => vec![
            runs(),
            column("filter memory", bytes, |o| o.facts.filter_bytes.map(|n| n as f64)),
            column("false positives / 1000 lookups", number, |o| {
                o.facts.false_positives.map(|n| 1000.0 * n as f64 / o.ops as f64)
            }),
            column("per run searched", percent, |o| {
                let (wrong, right) = (o.facts.false_positives?, o.facts.negatives?);
                (wrong + right > 0).then(|| wrong as f64 / (wrong + right) as f64)
            }),
        ],
        _ if spec.opens() => vec![
            column("open", nanos, |o| Some(o.open_ns)),
            column("to first answer", nanos, |o| o.first_answer_ns),
            column("to last answer", nanos, |o| Some(o.mean_ns)),
            range(),
            speedup(),
            column("disk reads", number, |o| o.disk_reads_per_op),
            column("major faults", number, |o| Some(o.major_faults_per_op)),
            column("disk bytes", bytes, |o| Some(o.disk_bytes_per_op)),
        ],
        WorkloadKind::Load => vec![
            column("rows/s settled", count, |o| o.settled_per_second),
            column("rows/s", count, |o| Some(o.ops_per_second)),
            column("compacting", nanos, |o| o.settle_seconds.map(|seconds| seconds * 1e9)),
            column("CPU", nanos, |o| o.load_cpu_seconds.map(|seconds| seconds * 1e9)),
            column("write amp", number, |o| o.write_amplification),
            column("on disk", bytes, |o| Some(o.disk_bytes as f64)),
            runs(),
            column("own memory", bytes, |o| Some(o.memory_bytes as f64)),
            data(),
        ],
        _ => {
            let mut columns = timing(run, &spec);
            if spec.store == StoreRole::Written {
                let memtables = |o: &WorkerOutcome| o.at_start.as_ref()?.memtable_bytes.map(|n| n as f64);
                columns.push(runs_at_start());
                columns.push(column("memtables at start", bytes, memtables));
                columns.push(("runs at end", runs().1));
            } else if spec.only_reads() {
                columns.push(column("disk reads/op", number, |o| o.disk_reads_per_op));
                columns.push(column("major faults/op", number, |o| Some(o.major_faults_per_op)));
                columns.push(column("disk bytes/op", bytes, |o| Some(o.disk_bytes_per_op)));
            } else {
                columns.push(column("compacting", nanos, |o| o.settle_seconds.map(|seconds| seconds * 1e9)));
                columns.push(column("write amp", number, |o| o.write_amplification));
                columns.push(column("on disk", bytes, |o| Some(o.disk_bytes as f64)));
            }
            columns.extend(memory(&spec));
            columns
        }
    }
}

/// The sorted runs of each level, after the last round.
fn runs() -> ResultColumn {
    let show = |run: &BenchRecord, engine: EngineKind, workload: &str| {
        run.runs_by_level(engine, workload).unwrap_or(DASH.to_owned())
    };
    ("runs by level", Box::new(show))
}

/// The sorted runs of each level before the first call, in the last round.
fn runs_at_start() -> ResultColumn {
    let show = |run: &BenchRecord, engine: EngineKind, workload: &str| {
        run.runs_at_start(engine, workload).unwrap_or(DASH.to_owned())
    };
    ("runs at start", Box::new(show))
}

fn memory(workload: &WorkloadSpec) -> Vec<ResultColumn> {
    let limited = |figure: fn(&CgroupUsage) -> u64| {
        move |o: &WorkerOutcome| o.limited.as_ref().map(|usage| figure(usage) as f64)
    };
    if workload.cache == CacheState::Limited {
        return vec![
            column("own memory", bytes, limited(|usage| usage.own_bytes)),
            column("page cache", bytes, limited(|usage| usage.page_cache_bytes)),
            column("peak", bytes, limited(|usage| usage.peak_bytes)),
        ];
    }
    vec![
        column("memory", bytes, WorkerOutcome::all_memory_bytes),
        column("own memory", bytes, |o| Some(o.memory_bytes as f64)),
        column("page cache", bytes, |o| o.page_cache_bytes.map(|n| n as f64)),
        column("mapped", bytes, |o| Some(o.mapped_bytes as f64)),
        data(),
    ]
}

/// Whether the engine compresses, and whether it has a cache of its own or leaves that to the page cache.
fn data() -> ResultColumn {
    ("data", Box::new(|_, engine, _| engine.data().to_owned()))
}

/// The text above a workload's table.
pub fn about(run: &BenchRecord, workload: &WorkloadSpec) -> Option<String> {
    let settings = &run.settings;
    if workload.store == StoreRole::Written && run.has(workload.name) {
        return Some(format!(
            "{} rows of {} bytes, each written and then once more, read at once: nobody flushes or waits for a compaction",
            count(settings.written as f64),
            count((settings.for_written().data_bytes() / settings.written) as f64),
        ));
    }
    (workload.cache == CacheState::Limited && run.has(workload.name)).then(|| {
        format!(
            "each engine limited to {} of memory, page cache included; caches of {} MiB; {} bytes of keys and values",
            bytes(settings.limit_bytes() as f64),
            settings.in_limited_memory().cache_mib,
            count(settings.data_bytes() as f64),
        )
    })
}

fn timing(run: &BenchRecord, workload: &WorkloadSpec) -> Vec<ResultColumn> {
    let mut columns = vec![
        column("ops/s", number, |o| Some(o.ops_per_second)),
        column("mean", nanos, |o| Some(o.mean_ns)),
        range(),
    ];
    // A scan has no calls for single keys.
    if !matches!(workload.kind, WorkloadKind::Scan | WorkloadKind::ScanKeys) {
        columns.push(column("p50", nanos, |o| Some(o.p50_ns)));
        columns.push(column("p99", nanos, |o| Some(o.p99_ns)));
        columns.push(column("p99.9", nanos, |o| Some(o.p999_ns)));
    }
    columns.push(speedup());
    columns.push(column("cpu/op", nanos, |o| Some(o.cpu_ns_per_op)));
    let beside = |o: &WorkerOutcome| o.beside_per_second;
    if run.results.iter().any(|one| one.workload == workload.name && beside(&one.outcome).is_some()) {
        columns.push(column("writer's puts/s", count, beside));
    }
    columns
}

fn range() -> ResultColumn {
    let show = |run: &BenchRecord, engine: EngineKind, workload: &str| {
        format::range(&run.values(engine, workload, |o| Some(o.mean_ns)), nanos)
    };
    ("min–max", Box::new(show))
}

fn speedup() -> ResultColumn {
    let show =
        |run: &BenchRecord, engine: EngineKind, workload: &str| shown(run.speedup(engine, workload), times);
    ("speed", Box::new(show))
}
