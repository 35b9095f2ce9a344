//! The handle, and lookups.

use super::canonical::Canonical;
use super::generation::STRIPES;
use super::shared::Shared;
use super::stored_hash::StoredHash;
use crate::error::Result;
use crate::filter::Verdict;
use crate::key::Expiry;
use crate::sync::atomic::Ordering;
use crate::sync::lock;
use std::path::Path;
use std::sync::Arc;

/// An open guard. A clone is another handle to the same guard, for sharing between threads; dropping the last
/// one closes the guard.
///
/// One process at a time has a guard open for writing. Lookups never wait for changes or a refresh.
#[derive(Clone)]
pub struct Guard {
    shared: Arc<Shared>,
}

impl Guard {
    pub(super) fn new(shared: Shared) -> Self {
        Guard { shared: Arc::new(shared) }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether a row may have this key, from memory alone. [`Verdict::Absent`] is certain. A key that the
    /// guard's [`Canonical`] form does not allow (one that is not UTF-8, when case is folded) is "maybe": the
    /// database decides. So is every key in a process forked from the one that opened the guard, because
    /// insertions there are not known here. A key that has expired may stay "maybe" until a compaction drops
    /// it; [`contains`](Self::contains) knows.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        let verdict = match self.shared.hash(key.as_ref()) {
            _ if self.is_suspended() => Verdict::Maybe,
            Ok(hash) => self.shared.live.load().may_contain(hash),
            Err(_) => Verdict::Maybe,
        };
        self.shared.counters.count_lookups(1, u64::from(verdict == Verdict::Absent));
        verdict
    }

    /// [`may_contain`](Self::may_contain) for several keys, in the order of `keys`. Prefetches the filter
    /// lines of many keys at once.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let hashes: Vec<Result<StoredHash>> = keys.iter().map(|key| self.shared.hash(key.as_ref())).collect();
        let valid: Vec<StoredHash> = hashes.iter().flatten().copied().collect();
        // Read first: once the suspension is over, the answers must come from the generation that ended it.
        let is_suspended = self.is_suspended();
        let mut answers = self.shared.live.load().may_contain_many(&valid).into_iter();
        let verdict = |hash: &Result<StoredHash>| hash.as_ref().ok().and_then(|_| answers.next());
        let known = |verdict: Option<Verdict>| verdict.filter(|_| !is_suspended).unwrap_or(Verdict::Maybe);
        let verdicts: Vec<Verdict> = hashes.iter().map(verdict).map(known).collect();
        let absent = verdicts.iter().filter(|verdict| **verdict == Verdict::Absent).count();
        self.shared.counters.count_lookups(keys.len() as u64, absent as u64);
        verdicts
    }

    /// Whether a row has this key, as far as the guard knows: resolves a "maybe" without the database. May
    /// read a block from disk.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a key that the canonical form does not
    /// allow; the errors of [`Db::get`](crate::Keyspace::get). [`Error::Forked`](crate::Error::Forked).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.count(key)? > 0)
    }

    /// How many rows have this key, as far as the guard knows. May read a block from disk.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains).
    pub fn count(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        self.shared.process.check()?;
        let hash = self.shared.hash(key.as_ref())?;
        self.shared.live.load_full().count(hash)
    }

    /// Whether a key may expire or have expired ([`Changes::insert_new_with`](super::Changes)), so that
    /// [`may_contain`](Self::may_contain) may be "maybe" for one that has. Stays so until a
    /// [`refresh`](Self::refresh) finds none left.
    pub fn may_expire(&self) -> bool {
        self.shared.live.load().expiring.is_used()
    }

    /// The moment of an expiry, by the guard's clock: in a change, it has no error.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for an expiry that is not possible.
    pub fn moment_of(&self, expiry: Expiry) -> Result<Expiry> {
        Ok(self
            .shared
            .live
            .load()
            .moment_of(expiry)?
            .map_or(Expiry::never(), |time| Expiry::at(time.to_system())))
    }

    /// Reports that the database does not have a key for which the guard said "maybe". With
    /// [`GuardOptions::known_absent`](super::GuardOptions::known_absent), the guard remembers the key and
    /// answers "absent" until a row with this key is inserted. Returns whether the guard now remembers the
    /// key. It does not if the list is full, or if it counts a row with this key: the row may be about to be
    /// committed, or may have been removed without telling the guard.
    ///
    /// # Errors
    /// The errors of [`contains`](Self::contains) and [`insert`](Self::insert).
    pub fn confirm_absent(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let hash = self.shared.hash(key.as_ref())?;
        self.shared.counters.false_positives.fetch_add(1, Ordering::Relaxed);
        if self.shared.options.known_absent == 0 {
            return Ok(false);
        }
        self.shared.check_writable()?;
        let _stripe = self.shared.stripes.get(hash.stripe(STRIPES)).map(lock);
        self.shared.live.load_full().add_known_absent(hash)
    }

    /// The guard's directory: the absolute path at which it was opened.
    pub fn path(&self) -> &Path {
        &self.shared.dir
    }

    /// Which keys this guard treats as equal.
    pub fn canonical(&self) -> Canonical {
        self.shared.settings.canonical
    }

    /// The note from the last [`Changes::note`](super::Changes::note): a caller's position in a stream.
    ///
    /// # Errors
    /// The errors of [`Db::get`](crate::Keyspace::get). [`Error::Forked`](crate::Error::Forked).
    pub fn note(&self) -> Result<Option<Vec<u8>>> {
        self.shared.process.check()?;
        self.shared.live.load_full().note()
    }

    /// Makes every answer "maybe", for all handles to this guard, until [`resume`](Self::resume). For a
    /// caller that learns that the guard may lack rows and will [`refresh`](Self::refresh) it. Not stored on
    /// disk.
    pub fn suspend(&self) {
        self.shared.suspended.store(true, Ordering::Release);
    }

    /// Ends [`suspend`](Self::suspend), once the guard has all rows again.
    pub fn resume(&self) {
        self.shared.suspended.store(false, Ordering::Release);
    }

    /// Whether every answer is currently "maybe": after [`suspend`](Self::suspend), and in a forked process.
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.shared.suspended.load(Ordering::Acquire) || !self.shared.process.is_current()
    }

    /// Makes all changes so far durable; for a guard with [`Durability::Os`](crate::Durability::Os).
    ///
    /// # Errors
    /// The errors of [`Db::sync`](crate::Keyspace::sync).
    pub fn sync(&self) -> Result<()> {
        self.shared.live.load_full().db.sync()
    }
}
