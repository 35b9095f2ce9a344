//! What a commit costs that validates 100 reads of absent keys.

use super::comparison::Comparison;
use super::kind::StoreKind;
use super::record::ValidationResult;
use super::store::{Aborts, Outcome, WriteStore};
use crate::error::Result;
use crate::keys::SplitMix64;
use crate::terminal::progress;
use std::time::Instant;

/// Absent keys that a transaction reads.
const ABSENT: u64 = 100;
/// Repetitions are fewer with a flush in each, which takes milliseconds.
const FLUSHED_EVERY: u64 = 8;

impl Comparison {
    /// Times commits in all stores whose transactions validate what they have read.
    pub fn time_validation(&mut self) -> Result<()> {
        for at in 0..self.record.stores.len() {
            let kind = self.record.stores[at].store;
            if kind.is_optimistic() {
                progress(&format!("commits of {}", kind.name()));
                self.record.stores[at].validation = Some(self.validation(kind)?);
            }
        }
        // Each repetition writes two new rows.
        self.next_new += 4 * 2 * self.record.settings.validations;
        Ok(())
    }

    fn validation(&self, kind: StoreKind) -> Result<ValidationResult> {
        let store = self.open_warm(kind, 1)?;
        let count = self.record.settings.validations;
        let flushed = count.div_ceil(FLUSHED_EVERY);
        let mut result = ValidationResult::default();
        let mut pass = CommitPass { comparison: self, store: store.as_ref(), next: self.next_new };
        let aborts = &mut result.aborts;
        result.no_reads_ns = pass.times(count, 0, false, aborts)?;
        result.reads_ns = pass.times(count, ABSENT, false, aborts)?;
        result.flushed_no_reads_ns = pass.times(flushed, 0, true, aborts)?;
        result.flushed_reads_ns = pass.times(flushed, ABSENT, true, aborts)?;
        self.close(store)?;
        Ok(result)
    }
}

struct CommitPass<'a> {
    comparison: &'a Comparison,
    store: &'a dyn WriteStore,
    /// The index of the next new key.
    next: u64,
}

impl CommitPass<'_> {
    /// Times commits of transactions that have read so many absent keys and put one key. Meanwhile somebody
    /// else puts another key, and may flush the memtable.
    fn times(&mut self, count: u64, reads: u64, flushes: bool, aborts: &mut Aborts) -> Result<Vec<f64>> {
        let rows = &self.comparison.rows;
        let (mut rng, mut value) = (SplitMix64::new(self.next), Vec::new());
        let mut times = Vec::new();
        for _ in 0..count {
            let absent: Vec<_> = (0..reads).map(|_| rows.missing_key(rng.below(rows.num))).collect();
            let mut transaction = self.store.begin()?;
            for key in &absent {
                if transaction.get(key, &mut value)? {
                    return Err("WRONG ANSWER: an absent key was found".into());
                }
            }
            self.put_new(&mut value, |key, value| self.store.put(key, value))?;
            if flushes {
                self.store.flush()?;
            }
            self.next += 1;
            self.put_new(&mut value, |key, value| transaction.put(key, value))?;
            self.next += 1;
            let begin = Instant::now();
            let outcome = transaction.commit()?;
            times.push(begin.elapsed().as_nanos() as f64);
            if outcome != Outcome::Committed {
                aborts.count(outcome);
            }
        }
        Ok(times)
    }

    fn put_new(&self, value: &mut Vec<u8>, put: impl FnOnce(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let rows = &self.comparison.rows;
        rows.values.write(self.next, 0, value);
        put(&rows.key(self.next), value)
    }
}
