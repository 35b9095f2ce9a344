//! Keys of a guard that expire: rows of their own, beside the counts, so that these and the totals are of
//! keys that stay.

use super::format::{EXPIRING, HashWidth, meta_key};
use super::stored_hash::StoredHash;
use crate::Db;
use crate::codec::{Decoder, Encode};
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::{Expiry, Time};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::wal::Batch;

/// The expiring keys of a generation. Without any, lookups read one flag.
pub(super) struct ExpiringKeys {
    width: HashWidth,
    /// Whether there may be one, or was.
    is_used: AtomicBool,
}

impl ExpiringKeys {
    /// Those of a store, from its filters alone: an image of a guard has nothing else.
    pub fn of(db: &Db, width: HashWidth) -> Self {
        let is_used = db.may_contain(meta_key(width, EXPIRING, &[])) == Verdict::Maybe;
        ExpiringKeys { width, is_used: AtomicBool::new(is_used) }
    }

    /// Whether there may be one, or was.
    #[inline]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    fn row_of(&self, hash: StoredHash) -> Vec<u8> {
        meta_key(self.width, EXPIRING, hash.to_bytes(self.width).as_ref())
    }

    /// Answers for keys that are absent otherwise, from memory alone. An expired key may stay "maybe" until a
    /// compaction.
    #[cold]
    pub fn correct(&self, db: &Db, hashes: &[StoredHash], verdicts: &mut [Verdict]) {
        let absent = || hashes.iter().zip(0..).filter(|(_, at)| verdicts.get(*at) == Some(&Verdict::Absent));
        let (rows, places): (Vec<_>, Vec<usize>) =
            absent().map(|(hash, at)| (self.row_of(*hash), at)).unzip();
        for (verdict, at) in db.may_contain_many(&rows).into_iter().zip(places) {
            if let Some(place) = verdicts.get_mut(at) {
                *place = verdict;
            }
        }
    }

    /// When a key expires; `None` for one that is not there, or has expired, and in a damaged row `Err` with
    /// what is wrong. May read the disk.
    pub fn until(&self, db: &Db, hash: StoredHash) -> Result<Result<Option<Time>, &'static str>> {
        if !self.is_used() {
            return Ok(Ok(None));
        }
        Ok(match db.get(self.row_of(hash))? {
            None => Ok(None),
            Some(value) => decode(&value).map(Some),
        })
    }

    /// Adds a row, or the deletion of one, to a batch. Returns whether the batch then has a row, so that
    /// [`note_used`](Self::note_used) must follow.
    pub fn put(&self, batch: &mut Batch, hash: StoredHash, until: Option<Time>) -> bool {
        let Some(time) = until else {
            batch.delete(self.row_of(hash));
            return false;
        };
        let mut value = Vec::new();
        value.put_varint(time.millis());
        batch.put_with(self.row_of(hash), value, Expiry::at(time.to_system()));
        if !self.is_used() {
            batch.put(meta_key(self.width, EXPIRING, &[]), []);
        }
        true
    }

    /// Called when a batch with a row is in the store, and before it is acknowledged.
    pub fn note_used(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    /// All that have not expired, in no order that matters, each with its moment.
    pub fn all(&self, db: &Db) -> impl Iterator<Item = Result<Result<(StoredHash, Time), &'static str>>> {
        let (width, mark) = (self.width, meta_key(self.width, EXPIRING, &[]));
        db.prefix(&mark).filter_map(move |row| {
            let (key, value) = match row {
                Ok(row) => row,
                Err(error) => return Some(Err(error)),
            };
            let hash = key.get(mark.len()..).filter(|rest| !rest.is_empty())?;
            let hash = StoredHash::from_bytes(hash, width).ok_or("invalid hash of a key that expires");
            Some(Ok(hash.and_then(|hash| Ok((hash, decode(&value)?)))))
        })
    }
}

fn decode(value: &[u8]) -> Result<Time, &'static str> {
    Decoder::new(value).varint().map(Time::of_millis).ok_or("invalid moment of a key that expires")
}
