//! Passes of transactions, on one thread or on several.

use super::change::{Change, Picked};
use super::comparison::{Comparison, wrong};
use super::kind::StoreKind;
use super::record::PassResult;
use super::rows::{Written, add_writes};
use super::store::{Aborts, Outcome, WriteStore};
use super::workload::Workload;
use crate::error::Result;
use crate::kernel::ResourceCounters;
use crate::keys::ValueGenerator;
use std::sync::Barrier;
use std::time::{Duration, Instant};

impl Comparison {
    /// Times one workload of transactions in one store. `picked` has those of each thread.
    pub fn transaction_pass(
        &mut self,
        kind: StoreKind,
        workload: Workload,
        round: u64,
        picked: &[Vec<Picked>],
    ) -> Result<PassResult> {
        let directory = self.directory(kind);
        let store = self.open_warm(kind, round)?;
        let (counts, before) = (store.read_counts(), ResourceCounters::now(&directory));
        let (elapsed, aborts) = on_threads(store.as_ref(), &self.rows.values, picked)?;
        let used = ResourceCounters::now(&directory).since(before);
        let counts = store.read_counts().zip(counts).map(|(now, then)| now.since(then));
        let finishing = Instant::now();
        store.finish()?;
        let settled = elapsed + finishing.elapsed();
        self.check_transactions(store.as_ref(), picked)?;
        self.close(store)?;
        let ops = picked.iter().map(|picked| picked.len() as u64).sum();
        let per_op = |n: u64| n as f64 / ops as f64;
        Ok(PassResult {
            workload,
            round,
            ops,
            mean_ns: per_op(elapsed.as_nanos() as u64),
            settled_ns: per_op(settled.as_nanos() as u64),
            cpu_ns: per_op(used.cpu_ns),
            disk_reads: used.device_reads.map(per_op),
            duplicates: 0,
            counts,
            aborts,
        })
    }

    /// Checks that no update was lost or made twice.
    fn check_transactions(&self, store: &dyn WriteStore, picked: &[Vec<Picked>]) -> Result<()> {
        let mut now = Written::new();
        picked.iter().for_each(|picked| add_writes(&mut now, picked));
        let mut value = Vec::new();
        for (&index, times) in &now {
            let expected = self.written.get(&index).copied().unwrap_or(0) + times;
            store.get(&self.rows.key(index), &mut value)?;
            let generation = self.rows.values.generation(index, &value);
            if generation != Some(expected) {
                return Err(wrong(
                    store.kind(),
                    &format!("key {index} has {generation:?} instead of {expected} updates"),
                ));
            }
        }
        Ok(())
    }
}

/// Runs the transactions of each thread, which begin together. Returns the time from the first begin to the
/// last end.
fn on_threads(
    store: &dyn WriteStore,
    values: &ValueGenerator,
    picked: &[Vec<Picked>],
) -> Result<(Duration, Aborts)> {
    let start = Barrier::new(picked.len());
    let work = |picked: &[Picked]| -> Result<(Instant, Instant, Aborts)> {
        let mut aborts = Aborts::default();
        start.wait();
        let began = Instant::now();
        for picked in picked {
            run(store, &mut Change::new(values, picked), &mut aborts)?;
        }
        Ok((began, Instant::now(), aborts))
    };
    let work = &work;
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = picked.iter().map(|picked| scope.spawn(move || work(picked))).collect();
        running.into_iter().map(|thread| thread.join()).collect()
    });
    let (mut span, mut aborts) = (None::<(Instant, Instant)>, Aborts::default());
    for result in results {
        let (began, ended, of_thread) = result.map_err(|_| "a thread panicked")??;
        aborts.add(of_thread);
        span = Some(span.map_or((began, ended), |(first, last)| (first.min(began), last.max(ended))));
    }
    Ok((span.map_or(Duration::ZERO, |(first, last)| last - first), aborts))
}

/// Tries a transaction until it is committed, in every store alike.
fn run(store: &dyn WriteStore, change: &mut Change<'_>, aborts: &mut Aborts) -> Result<()> {
    loop {
        let outcome = store.transact(change)?;
        if outcome == Outcome::Committed {
            return Ok(());
        }
        aborts.count(outcome);
    }
}
