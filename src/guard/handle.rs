//! The handle, and the questions.

use super::canonical::Canonical;
use super::format::Settings;
use super::generation::{Generation, STRIPES};
use super::hashed::Hashed;
use super::options::GuardOptions;
use super::stats::Counters;
use super::write::Flux;
use crate::db::{add, lock};
use crate::error::{Error, Result};
use crate::filter::Verdict;
use crate::fs::LockGuard;
use arc_swap::ArcSwap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// An open guard. A clone is another handle to the same guard, to share between threads; the last one to go closes it.
///
/// One process at a time has a guard open for writing. Questions never wait for changes or a refresh.
#[derive(Clone)]
pub struct Guard {
    shared: Arc<Shared>,
}

/// Locks, always taken in this order, none of them by a question: `refreshing`, `stripes` by rising number, `flux`.
pub(super) struct Shared {
    pub dir: PathBuf,
    pub options: GuardOptions,
    /// As the guard was opened: a refresh changes the generation only.
    pub settings: Settings,
    pub live: ArcSwap<Generation>,
    /// Held while the counts of a stripe's hashes are changed.
    pub stripes: [Mutex<()>; STRIPES],
    pub flux: Mutex<Flux>,
    pub refreshing: Mutex<()>,
    pub counters: Counters,
    /// Whether every answer is "maybe": see [`Guard::suspend`].
    pub suspended: AtomicBool,
    /// Why nothing can be changed any more: it is not known which generation a reopened guard would find.
    pub failure: OnceLock<Arc<str>>,
    pub _lock: Box<dyn LockGuard>,
}

impl Guard {
    pub(super) fn new(shared: Shared) -> Self {
        Guard { shared: Arc::new(shared) }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Whether a row may have this key, from memory alone. [`Verdict::Absent`] is certain. A key that the guard's [`Canonical`] form does
    /// not allow (not UTF-8 where case is folded) is "maybe": the database has the last word.
    #[inline]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> Verdict {
        let verdict = match self.shared.hash(key.as_ref()) {
            _ if self.is_suspended() => Verdict::Maybe,
            Ok(hash) => self.shared.live.load().may_contain(hash),
            Err(_) => Verdict::Maybe,
        };
        self.shared.counters.count(1, u64::from(verdict == Verdict::Absent));
        verdict
    }

    /// [`may_contain`](Self::may_contain) of several keys, in the order of `keys`. The filter lines of many keys are fetched at once.
    pub fn may_contain_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Verdict> {
        let hashes: Vec<Result<Hashed>> = keys.iter().map(|key| self.shared.hash(key.as_ref())).collect();
        let hashed: Vec<Hashed> = hashes.iter().flatten().copied().collect();
        // Asked first: once it is over, the answers must be of the generation that ended it.
        let is_suspended = self.is_suspended();
        let mut answers = self.shared.live.load().may_contain_many(&hashed).into_iter();
        let verdict = |hash: &Result<Hashed>| hash.as_ref().ok().and_then(|_| answers.next());
        let known = |verdict: Option<Verdict>| verdict.filter(|_| !is_suspended).unwrap_or(Verdict::Maybe);
        let verdicts: Vec<Verdict> = hashes.iter().map(verdict).map(known).collect();
        let absent = verdicts.iter().filter(|verdict| **verdict == Verdict::Absent).count();
        self.shared.counters.count(keys.len() as u64, absent as u64);
        verdicts
    }

    /// Whether a row has this key, as far as the guard knows; settles a "maybe" without the database. May read a block from the disk.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that the canonical form does not allow; as [`Db::get`](crate::Db::get).
    pub fn exact(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.count(key)? > 0)
    }

    /// How many rows have this key, as far as the guard knows. May read a block from the disk.
    ///
    /// # Errors
    /// As [`exact`](Self::exact).
    pub fn count(&self, key: impl AsRef<[u8]>) -> Result<u64> {
        let hash = self.shared.hash(key.as_ref())?;
        self.shared.live.load_full().count(hash)
    }

    /// Reports that the database does not have a key for which the guard has said "maybe". With
    /// [`GuardOptions::exceptions`] it is remembered, and not asked again until a row with this key comes: the whitelist of known
    /// false positives that stands beside a filter of spam addresses. Returns whether it is remembered from now on; a key of which the
    /// guard knows a row is not (the row may be about to be committed, or it has gone without the guard being told).
    ///
    /// # Errors
    /// As [`exact`](Self::exact), and as [`insert`](Self::insert).
    pub fn confirm_absent(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let hash = self.shared.hash(key.as_ref())?;
        add(&self.shared.counters.false_positives, 1);
        if self.shared.options.exceptions == 0 {
            return Ok(false);
        }
        self.shared.check_writable()?;
        let _stripe = self.shared.stripes.get(hash.stripe(STRIPES)).map(lock);
        self.shared.live.load_full().except(hash)
    }

    /// When two keys count as one here.
    pub fn canonical(&self) -> Canonical {
        self.shared.settings.canonical
    }

    /// What the last [`Changes::note`](super::Changes::note) said: a caller's position in a stream of changes.
    ///
    /// # Errors
    /// As [`Db::get`](crate::Db::get).
    pub fn note(&self) -> Result<Option<Vec<u8>>> {
        self.shared.live.load_full().note()
    }

    /// From now on every answer is "maybe", for all handles to this guard, until [`resume`](Self::resume): for one who has learnt that the
    /// guard may lack rows, and will [`refresh`](Self::refresh) it. Not kept on disk.
    pub fn suspend(&self) {
        self.shared.suspended.store(true, Ordering::Release);
    }

    /// Ends [`suspend`](Self::suspend): the guard has all rows again.
    pub fn resume(&self) {
        self.shared.suspended.store(false, Ordering::Release);
    }

    /// Whether every answer is "maybe" for now.
    #[inline]
    pub fn is_suspended(&self) -> bool {
        self.shared.suspended.load(Ordering::Acquire)
    }

    /// Makes every change so far durable; for a guard with [`Durability::Os`](crate::Durability::Os).
    ///
    /// # Errors
    /// As [`Db::sync`](crate::Db::sync).
    pub fn sync(&self) -> Result<()> {
        self.shared.live.load_full().db.sync()
    }
}

impl Shared {
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Result<Hashed> {
        let settings = &self.settings;
        Ok(Hashed::of(&settings.canonical.apply(key)?, &settings.hasher, settings.width))
    }

    pub fn check_writable(&self) -> Result<()> {
        match self.failure.get() {
            Some(cause) => Err(Error::Poisoned { cause: Arc::clone(cause) }),
            None if self.options.read_only => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }
}
