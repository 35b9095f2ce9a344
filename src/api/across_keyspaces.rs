//! Batches and snapshots across keyspaces.

use super::keyspace::Keyspace;
use super::snapshot::Snapshot;
use crate::error::Result;
use crate::wal::{Batch, KeyspaceBatch};

impl Batch {
    /// Adds operations on a keyspace, which are applied with all others of the batch, in the order of the
    /// calls. The methods of the batch itself are for the default keyspace.
    ///
    /// Writing the batch fails with [`Error::KeyspaceDropped`](crate::Error::KeyspaceDropped) once one of its
    /// keyspaces was dropped, and with [`Error::ForeignKeyspace`](crate::Error::ForeignKeyspace) in another
    /// store.
    pub fn keyspace(&mut self, keyspace: &Keyspace) -> KeyspaceBatch<'_> {
        keyspace.in_batch(self)
    }
}

impl Snapshot {
    /// The same moment of another keyspace of the store, even if that was dropped since. A keyspace that was
    /// created later is empty.
    ///
    /// # Errors
    /// [`Error::ForeignKeyspace`](crate::Error::ForeignKeyspace) if it is one of another store.
    pub fn keyspace(&self, keyspace: &Keyspace) -> Result<Snapshot> {
        keyspace.check_store(self.store())?;
        Ok(self.of_space(keyspace.space))
    }
}
