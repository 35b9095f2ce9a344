//! From a batch to a group: who commits it.
//!
//! 1. A writer that finds the log unlocked commits its batch alone.
//! 2. Otherwise it looks a few times: the holder of the log, if it runs, is done within microseconds.
//! 3. After that, it queues its batch and waits for the lock. Whoever gets it commits a group of queued
//!    batches; the others in the group find their result.

use super::Writer;
use super::condition::Outcome;
use super::in_flight::{LOOKS, pause};
use super::log::{EncodedBatch, QueuedBatch};
use crate::engine::latency::Operation;
use crate::error::{Error, Result};
use crate::sync::{Instant, lock, try_lock};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum size of a group, in bytes, so that its first batch does not wait for too many others.
const GROUP_BYTES_MAX: usize = 1 << 20;

impl Writer {
    /// Commits a batch, which is not empty, with others: in this thread or in the one that holds the log.
    /// [`Outcome::Stale`] only if it has a condition.
    #[inline(always)]
    pub fn submit(&self, batch: EncodedBatch) -> Result<Outcome> {
        if self.shared.storage.latencies.is_some() {
            self.submit_timed(batch)
        } else {
            self.submit_untimed(batch)
        }
    }

    /// [`submit`](Self::submit), and records how long that took.
    #[cold]
    fn submit_timed(&self, batch: EncodedBatch) -> Result<Outcome> {
        let began = Instant::now();
        let outcome = self.submit_untimed(batch)?;
        self.shared.storage.note_latency(Operation::Put, began.elapsed());
        Ok(outcome)
    }

    #[inline(always)]
    fn submit_untimed(&self, mut batch: EncodedBatch) -> Result<Outcome> {
        // The commit checks the rest, but after a fork nobody may unlock the log.
        self.shared.storage.process.check()?;
        if let Some(mut log) = try_lock(&self.log) {
            let group = std::slice::from_mut(&mut batch);
            if let Some(insertion) = self.commit(&mut log, group)? {
                drop(log);
                self.insert_beside_others(insertion, group)?;
            }
            return batch.outcome();
        }
        self.waiting.fetch_add(1, Relaxed);
        let outcome = self.submit_beside_others(batch);
        self.waiting.fetch_sub(1, Relaxed);
        outcome
    }

    /// Commits a batch although another writer holds the log: soon if that writer runs, otherwise in a group.
    #[cold]
    fn submit_beside_others(&self, mut batch: EncodedBatch) -> Result<Outcome> {
        for _ in 0..LOOKS {
            pause();
            if let Some(mut log) = try_lock(&self.log) {
                let group = std::slice::from_mut(&mut batch);
                let insertion = self.commit(&mut log, group)?;
                drop(log);
                insertion.map_or(Ok(()), |insertion| self.insert_beside_others(insertion, group))?;
                return batch.outcome();
            }
        }
        self.write_in_group(batch)
    }

    /// Commits the batch that `prepare` returns. Other writers wait meanwhile, so what it reads is newest.
    #[cold]
    pub fn submit_alone(&self, prepare: impl FnOnce() -> Result<EncodedBatch>) -> Result<Outcome> {
        self.shared.storage.process.check()?;
        let mut log = lock(&self.log);
        self.in_flight.wait_for_all(&self.shared)?;
        let mut batch = prepare()?;
        let group = std::slice::from_mut(&mut batch);
        let insertion = self.commit(&mut log, group)?;
        drop(log);
        insertion.map_or(Ok(()), |insertion| self.insert_beside_others(insertion, group))?;
        batch.outcome()
    }

    /// Queues a batch while another writer holds the log. Whoever locks the log next commits it.
    fn write_in_group(&self, batch: EncodedBatch) -> Result<Outcome> {
        let mine = Arc::new(QueuedBatch::new(batch));
        lock(&self.queue).push(Arc::clone(&mine));
        loop {
            if let Some(result) = lock(&mine.result).take() {
                let (outcome, last) = result?;
                self.in_flight.wait_for(last, &self.shared)?;
                return Ok(outcome);
            }
            let mut log = lock(&self.log);
            if lock(&mine.result).is_some() {
                continue;
            }
            // If the thread that took this batch panicked, there is no result.
            self.shared.check_writable()?;
            let group = self.take_group();
            let taken = |queued: &Arc<QueuedBatch>| Some((Arc::clone(queued), lock(&queued.batch).take()?));
            let (group, mut batches): (Vec<_>, Vec<_>) = group.iter().filter_map(taken).unzip();
            let result = self.commit(&mut log, &mut batches);
            // Without an insertion that is still to come, all is visible.
            let last = result.as_ref().map_or(0, |rest| rest.as_ref().map_or(0, |rest| rest.last));
            for (queued, batch) in group.iter().zip(&batches) {
                let committed = result.as_ref().map_err(Error::clone);
                *lock(&queued.result) = Some(committed.and_then(|_| Ok((batch.outcome()?, last))));
            }
            drop(log);
            if let Ok(Some(insertion)) = result {
                self.insert_beside_others(insertion, &mut batches)?;
            }
        }
    }

    /// Takes the oldest batches from the queue, as many as fit into one group.
    fn take_group(&self) -> Vec<Arc<QueuedBatch>> {
        let mut queue = lock(&self.queue);
        let mut bytes = 0;
        let fits = queue.iter().take_while(|queued| {
            bytes += queued.bytes;
            bytes <= GROUP_BYTES_MAX
        });
        let n = fits.count().max(1).min(queue.len());
        queue.drain(..n).collect()
    }
}
