//! Batches, also those that expect values of keys.

use super::Writer;
use super::condition::{ATTEMPTS_BESIDE_OTHERS, Outcome, ReadSet, Reads};
use super::log::EncodedBatch;
use crate::engine::read::Reader;
use crate::error::{Error, Result};
use crate::key::without_head;
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
        self.submit(EncodedBatch::new(batch, durability)).map(drop)
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
        let batch = (!batch.is_empty()).then(|| EncodedBatch::new(batch, durability));
        // The moment of which the keys have these values.
        let look = || {
            let seen = self.shared.seen();
            let found = reader.multi_get(&reads.keys)?;
            let mut rows = reads.keys.iter().zip(values.iter().zip(&found));
            match rows.find(|(_, (expected, found))| expected.as_deref() != found.as_deref()) {
                Some((key, _)) => Err(Error::conflict(without_head(key))),
                None => Ok(seen),
            }
        };
        let Some(batch) = batch else {
            look()?;
            return self.write_nothing(&Batch::new(), durability);
        };
        let prepare =
            |attempts| Ok(batch.clone().only_if(look()?, Reads::These(Arc::clone(&reads)), attempts));
        for attempts in 0..ATTEMPTS_BESIDE_OTHERS {
            if self.submit(prepare(attempts)?)? == Outcome::Committed {
                return Ok(());
            }
        }
        self.submit_alone(|| prepare(ATTEMPTS_BESIDE_OTHERS)).map(drop)
    }
}
