//! Passes of puts and inserts.
//!
//! Rows are generated in chunks, so that only the calls are timed. Every answer is checked, and after the
//! pass a sample of the rows is read.

use super::comparison::{Comparison, wrong};
use super::kind::StoreKind;
use super::record::PassResult;
use super::rows::{InsertPlan, PlannedRow, REFUSED};
use super::store::{Aborts, Row, WriteStore};
use super::workload::{BATCH, Workload};
use crate::error::Result;
use crate::format::number;
use crate::kernel::{self, ResourceCounters};
use std::time::{Duration, Instant};

/// Rows that are generated together: whole batches.
const CHUNK: usize = 10 * BATCH as usize;
/// One in this many rows is read after the pass.
const SAMPLE: usize = 16;
/// Pages of a store in the page cache above which a cold pass would measure memory.
const CACHED_MAX: f64 = 0.01;

impl Comparison {
    /// Times one workload of inserts in one store; `None` if the pass is rejected.
    pub fn insert_pass(
        &mut self,
        kind: StoreKind,
        workload: Workload,
        round: u64,
        plan: InsertPlan,
    ) -> Result<Option<PassResult>> {
        let directory = self.directory(kind);
        let (store, is_rejected) = if workload.is_cold() {
            self.open_cold(kind, round)?
        } else {
            (self.open_warm(kind, plan.seed)?, false)
        };
        let planned: Vec<PlannedRow> = plan.planned(self.rows.num).collect();
        let (counts, before) = (store.read_counts(), ResourceCounters::now(&directory));
        let (mut elapsed, mut making_cpu_ns, mut rows) = (Duration::ZERO, 0, Vec::new());
        for planned in planned.chunks(CHUNK) {
            let making = kernel::thread_cpu_ns();
            self.rows.fill(planned, &mut rows);
            making_cpu_ns += kernel::thread_cpu_ns() - making;
            elapsed += insert(store.as_ref(), workload, planned, &rows)?;
        }
        let used = ResourceCounters::now(&directory).since(before);
        let counts = store.read_counts().zip(counts).map(|(now, then)| now.since(then));
        let finishing = Instant::now();
        store.finish()?;
        let settled = elapsed + finishing.elapsed();
        self.check_inserted(store.as_ref(), &planned)?;
        self.close(store)?;
        let per_op = |n: u64| n as f64 / planned.len() as f64;
        let pass = PassResult {
            workload,
            round,
            ops: planned.len() as u64,
            mean_ns: per_op(elapsed.as_nanos() as u64),
            settled_ns: per_op(settled.as_nanos() as u64),
            cpu_ns: per_op(used.cpu_ns.saturating_sub(making_cpu_ns)),
            disk_reads: used.device_reads.map(per_op),
            duplicates: planned.iter().filter(|row| !row.is_new).count() as u64,
            counts,
            aborts: Aborts::default(),
        };
        Ok((!is_rejected).then_some(pass))
    }

    /// Opens a store, with filters and indexes in memory, and its files out of the page cache. Also returns
    /// whether they are in it nevertheless.
    fn open_cold(&mut self, kind: StoreKind, round: u64) -> Result<(Box<dyn WriteStore>, bool)> {
        let store = self.open(kind, false)?;
        store.warm()?;
        let mut files = kernel::files(&self.directory(kind));
        files.retain(|file| !kind.stays_in_memory(file));
        kernel::drop_page_cache(&files)?;
        let cached = kernel::cached_share(&files)?;
        if cached > CACHED_MAX {
            self.record.notes.push(format!(
                "rejected: cold, {}, round {}: {} % of its pages stayed in the page cache",
                kind.name(),
                round + 1,
                number(100.0 * cached)
            ));
        }
        Ok((store, cached > CACHED_MAX))
    }

    /// Checks that the store has the new rows, and kept the values of those that were there.
    fn check_inserted(&self, store: &dyn WriteStore, planned: &[PlannedRow]) -> Result<()> {
        let mut value = Vec::new();
        for row in planned.iter().step_by(SAMPLE) {
            store.get(&self.rows.key(row.index), &mut value)?;
            let generation = self.rows.values.generation(row.index, &value);
            let is_right = match generation {
                Some(generation) if row.is_new => generation == 0,
                Some(generation) => generation != REFUSED,
                None => false,
            };
            if !is_right {
                return Err(wrong(
                    store.kind(),
                    &format!("{row:?} has generation {generation:?} after inserts"),
                ));
            }
        }
        Ok(())
    }
}

/// Times the calls of a chunk.
fn insert(
    store: &dyn WriteStore,
    workload: Workload,
    planned: &[PlannedRow],
    rows: &[Row],
) -> Result<Duration> {
    let mut are_new = Vec::with_capacity(rows.len());
    let begin = Instant::now();
    match workload {
        Workload::Put => {
            for (key, value) in rows {
                store.put(key, value)?;
            }
        }
        Workload::InsertMany => {
            for batch in rows.chunks(BATCH as usize) {
                are_new.extend(store.insert_new_many(batch)?);
            }
        }
        _ => {
            for (key, value) in rows {
                are_new.push(store.insert_new(key, value)?);
            }
        }
    }
    let elapsed = begin.elapsed();
    let is_wrong = are_new.iter().zip(planned).any(|(is_new, row)| *is_new != row.is_new);
    if is_wrong || (workload != Workload::Put && are_new.len() != rows.len()) {
        return Err(wrong(store.kind(), &format!("{} took a new key for an old one", workload.name())));
    }
    Ok(elapsed)
}
