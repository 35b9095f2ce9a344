//! A long transaction, during which another thread writes other keys and memtables are flushed.

use super::comparison::Comparison;
use super::kind::StoreKind;
use super::record::LongResult;
use super::rows::{KEY_BYTES, PlannedRow, VALUE_BYTES};
use super::store::{Outcome, WriteStore};
use super::workload::BATCH;
use crate::error::Result;
use crate::terminal::progress;
use std::time::{Duration, Instant};

/// Keys that the transaction reads: half of them are absent.
const READS: u64 = 1000;
/// Keys and values written during it, in memtables. So at least five are flushed.
const MEMTABLES: f64 = 6.5;

impl Comparison {
    /// Runs the long transaction in all stores that let others write during it.
    pub fn run_long(&mut self) -> Result<()> {
        let row_bytes = (KEY_BYTES + VALUE_BYTES) as f64;
        let memtable_bytes = (self.record.settings.memtable_mib << 20) as f64;
        let rows = (MEMTABLES * memtable_bytes / row_bytes) as u64 / BATCH * BATCH;
        for at in 0..self.record.stores.len() {
            let kind = self.record.stores[at].store;
            if kind.is_optimistic() {
                progress(&format!("the long transaction of {}", kind.name()));
                self.record.stores[at].long = Some(self.long(kind, rows)?);
            }
        }
        self.next_new += rows + 1;
        Ok(())
    }

    fn long(&self, kind: StoreKind, rows: u64) -> Result<LongResult> {
        let store = self.open(kind, true)?;
        store.warm()?;
        let begin = Instant::now();
        let mut transaction = store.begin()?;
        let mut value = Vec::new();
        for index in 0..READS / 2 {
            let index = index * (self.rows.num / READS);
            let found = transaction.get(&self.rows.key(index), &mut value)?;
            if !found || transaction.get(&self.rows.missing_key(index), &mut value)? {
                return Err("WRONG ANSWER: a long transaction read a wrong key".into());
            }
        }
        let store_in_thread = store.as_ref();
        let writing =
            std::thread::scope(|scope| scope.spawn(|| self.write_others(store_in_thread, rows)).join());
        let (others_rows, flushes) = writing.map_err(|_| "the writer thread panicked")??;
        let own = self.next_new + rows;
        self.rows.values.write(own, 0, &mut value);
        transaction.put(&self.rows.key(own), &value)?;
        let committing = Instant::now();
        let outcome = transaction.commit()?;
        let (commit, seconds) = (committing.elapsed(), begin.elapsed().as_secs_f64());
        let is_there = store.get(&self.rows.key(own), &mut value)?;
        if is_there != (outcome == Outcome::Committed) {
            return Err(format!("WRONG ANSWER: {}: {outcome:?}, row there: {is_there}", kind.name()).into());
        }
        self.close(store)?;
        Ok(LongResult {
            seconds,
            reads: READS,
            others_rows,
            flushes,
            outcome,
            commit_ns: commit.as_nanos() as f64,
        })
    }

    /// Writes new rows in batches, spread over the length of the transaction. Returns how many, and how often
    /// the bytes of flushes grew.
    fn write_others(&self, store: &dyn WriteStore, rows: u64) -> Result<(u64, Option<u64>)> {
        let length = Duration::from_secs(self.record.settings.long_seconds);
        let begin = Instant::now();
        let (mut batch, mut flushed, mut flushes) = (Vec::new(), store.flushed_bytes(), 0);
        for first in (0..rows).step_by(BATCH as usize) {
            let due = length.mul_f64(first as f64 / rows as f64);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
            let indexes = self.next_new + first..self.next_new + first + BATCH;
            let planned: Vec<_> = indexes.map(|index| PlannedRow { index, is_new: true }).collect();
            self.rows.fill(&planned, &mut batch);
            store.put_all(&batch)?;
            let now = store.flushed_bytes();
            flushes += u64::from(now > flushed);
            flushed = now;
        }
        std::thread::sleep(length.saturating_sub(begin.elapsed()));
        flushes += u64::from(store.flushed_bytes() > flushed);
        Ok((rows, flushed.map(|_| flushes)))
    }
}
