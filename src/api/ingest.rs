//! Bulk loading.

use super::keyspace::Keyspace;
use crate::error::{Error, Result};
use crate::key::{MAX_KEY_BYTES, Space};
use crate::progress::{Progress, Tracker, unstoppable};

impl Keyspace {
    /// Loads rows with unique keys in ascending order. They bypass the log and the memtable and become
    /// segments with filters. They become visible all at once just before this returns, and are then durable.
    /// They replace what the store has under their keys, including what was written during the load. The
    /// store stays usable, even by `rows`. An empty iterator does nothing.
    ///
    /// Rows in between existing ones may go to level 0, where they are compacted later. At 36 level-0
    /// segments, writers stall until compaction catches up.
    ///
    /// # Errors
    /// The first error among the rows, [`Error::KeyOutOfOrder`](crate::Error::KeyOutOfOrder),
    /// [`Error::KeyTooLarge`](crate::Error::KeyTooLarge),
    /// [`Error::ValueTooLarge`](crate::Error::ValueTooLarge): no row is stored. The errors of
    /// [`flush`](Self::flush) if the segments cannot be written or published.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.ingest_with(rows, |_| ())
    }

    /// Like [`ingest`](Self::ingest), but calls `progress` now and then, with the bytes of keys and values
    /// that were taken. How many are left is known only at the end. `rows` can stop the load with an error.
    ///
    /// # Errors
    /// The errors of [`ingest`](Self::ingest).
    pub fn ingest_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
        progress: impl FnMut(&Progress),
    ) -> Result<()> {
        let rows = &mut stored_rows(self.space, rows);
        let mut tell = unstoppable(progress);
        let mut progress = Tracker::new(&mut tell, None);
        self.own()?.writer.ingest(self.id.as_deref(), rows, &mut progress)?;
        progress.finish();
        Ok(())
    }

    /// [`ingest`](Self::ingest) for rows in any order. For rows with the same key, the last one wins. Sorting
    /// takes as much memory as a memtable ([`Options::memtable_bytes`](crate::Options::memtable_bytes)). More
    /// rows than that go to temporary files in the store's directory, which are removed before this returns,
    /// or by the next open.
    ///
    /// # Errors
    /// The errors of [`ingest`](Self::ingest), except for keys out of order.
    /// [`Error::Corruption`](crate::Error::Corruption) if a temporary file does not read back as written.
    pub fn ingest_unsorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.ingest_unsorted_with(rows, |_| ())
    }

    /// Like [`ingest_unsorted`](Self::ingest_unsorted), but calls `progress` now and then. Each row counts
    /// twice: when it is taken, and when it is written. How many bytes are left is known once all were taken.
    ///
    /// # Errors
    /// The errors of [`ingest_unsorted`](Self::ingest_unsorted).
    pub fn ingest_unsorted_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: impl IntoIterator<Item = Result<(K, V)>>,
        progress: impl FnMut(&Progress),
    ) -> Result<()> {
        let rows = &mut stored_rows(self.space, rows);
        let mut tell = unstoppable(progress);
        let mut progress = Tracker::new(&mut tell, None);
        self.own()?.writer.ingest_unsorted(self.id.as_deref(), rows, &mut progress)?;
        progress.finish();
        Ok(())
    }
}

/// Rows with the keys as they are stored.
fn stored_rows<K: AsRef<[u8]>, V>(
    space: Space,
    rows: impl IntoIterator<Item = Result<(K, V)>>,
) -> impl Iterator<Item = Result<(StoredKey<K>, V)>> {
    rows.into_iter().map(move |row| {
        let (key, value) = row?;
        match key.as_ref().len() {
            len if len > MAX_KEY_BYTES => Err(Error::KeyTooLarge { len, max: MAX_KEY_BYTES }),
            _ if space.head(key.as_ref()).is_empty() => Ok((StoredKey::Plain(key), value)),
            _ => Ok((StoredKey::Headed(space.stored(key.as_ref())), value)),
        }
    })
}

/// A key as it is stored.
enum StoredKey<K> {
    Plain(K),
    Headed(Vec<u8>),
}

impl<K: AsRef<[u8]>> AsRef<[u8]> for StoredKey<K> {
    fn as_ref(&self) -> &[u8] {
        match self {
            StoredKey::Plain(key) => key.as_ref(),
            StoredKey::Headed(key) => key,
        }
    }
}
