//! Batches across keyspaces.

use super::keyspace::Keyspace;
use crate::wal::{Batch, KeyspaceBatch};

impl Batch {
    /// Adds operations on a keyspace, which are applied with all others of the batch, in the order of the calls.
    /// The methods of the batch itself are for the default keyspace.
    ///
    /// Writing the batch fails with [`Error::KeyspaceDropped`](crate::Error::KeyspaceDropped) once one of its
    /// keyspaces was dropped, and with [`Error::ForeignKeyspace`](crate::Error::ForeignKeyspace) in another
    /// store.
    pub fn keyspace(&mut self, keyspace: &Keyspace) -> KeyspaceBatch<'_> {
        keyspace.in_batch(self)
    }
}
