//! Batches, also those that expect values of keys.

use super::Writer;
use super::condition::{ATTEMPTS_BESIDE_OTHERS, Outcome, ReadSet, Reads};
use super::log::EncodedBatch;
use crate::engine::read::Reader;
use crate::error::{Error, Result};
use crate::key::{Entry, Time, without_head};
use crate::options::Durability;
use crate::wal::Batch;
use std::sync::Arc;

impl Writer {
    /// Commits a batch atomically.
    pub fn write(&self, batch: Batch, durability: Durability) -> Result<()> {
        if !batch.keyspaces().ids().is_empty() {
            self.check_keyspaces(&batch)?;
        }
        if batch.has_expectations() {
            return self.write_expecting(batch, durability);
        }
        if batch.is_empty() {
            return self.write_nothing(&batch, durability);
        }
        batch.validate()?;
        self.submit(EncodedBatch::new(batch, durability, &self.shared.storage.clock)?).map(drop)
    }

    /// Fails if the batch names a keyspace that was dropped, or is of another store.
    #[cold]
    fn check_keyspaces(&self, batch: &Batch) -> Result<()> {
        let keyspaces = &self.shared.storage.keyspaces;
        batch.keyspaces().ids().iter().try_for_each(|id| keyspaces.check(id))
    }

    #[cold]
    fn write_nothing(&self, batch: &Batch, durability: Durability) -> Result<()> {
        batch.validate()?;
        match durability {
            Durability::Sync => self.sync(),
            Durability::Os => self.shared.check_writable(),
        }
    }

    /// Commits a batch if the keys have the values that it expects.
    ///
    /// # Errors
    /// [`Error::Conflict`] if one has not; the errors of writing, and of reading these keys.
    #[cold]
    fn write_expecting(&self, mut batch: Batch, durability: Durability) -> Result<()> {
        let reader = Reader::new(Arc::clone(&self.shared));
        self.shared.check_writable()?;
        batch.validate()?;
        let expected = batch.take_expected().unwrap_or_default();
        let (keys, values): (Vec<Vec<u8>>, Vec<Option<Vec<u8>>>) = expected.into_iter().unzip();
        let reads = Arc::new(ReadSet { keys, ranges: Vec::new() });
        let _kept = reads.needs_recent().then(|| self.keep_recent());
        let batch = if batch.is_empty() {
            None
        } else {
            Some(EncodedBatch::new(batch, durability, &self.shared.storage.clock)?)
        };
        // The moment of which the keys have these values, and when the first of these expires, or never.
        let look = || {
            let seen = self.shared.seen();
            let (view, as_of) = self.shared.snapshot();
            let (mut rows, mut differs, mut until) = (reads.keys.iter().zip(&values), None, Time::NEVER);
            reader.find_each(
                &view,
                as_of,
                &reads.keys,
                |entry| entry,
                |found: Option<Entry>| {
                    let Some((key, expected)) = rows.next() else { return };
                    if expected.as_deref() != found.as_ref().map(|entry| &*entry.value) {
                        differs.get_or_insert(key);
                    }
                    let expiry = found.and_then(|entry| entry.kind.expiry());
                    until = until.min(expiry.unwrap_or(Time::NEVER));
                },
            )?;
            differs.map_or(Ok((seen, until)), |key| Err(Error::conflict(without_head(key))))
        };
        let Some(batch) = batch else {
            look()?;
            return self.write_nothing(&Batch::new(), durability);
        };
        let conditional =
            |seen, attempts| batch.clone().only_if(seen, Reads::These(Arc::clone(&reads)), attempts);
        for attempts in 0..ATTEMPTS_BESIDE_OTHERS {
            let (seen, until) = look()?;
            if self.submit(conditional(seen, attempts).only_before(until))? == Outcome::Committed {
                return Ok(());
            }
        }
        self.submit_alone(|| Ok(conditional(look()?.0, ATTEMPTS_BESIDE_OTHERS))).map(drop)
    }
}
