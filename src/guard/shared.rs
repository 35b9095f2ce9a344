//! The state that all handles to a guard share.

use super::changes::{ChangeKind, Effect};
use super::counters::GuardCounters;
use super::format::Settings;
use super::generation::{Generation, STRIPES};
use super::options::GuardOptions;
use super::stored_hash::StoredHash;
use crate::error::{Error, Result};
use crate::fs::{LockGuard, Process};
use crate::sync::atomic::AtomicBool;
use crate::sync::{ArcSwap, Mutex};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Locks are always taken in this order, never by lookups: `refreshing`, `stripes` (ascending), `in_flight`.
pub(super) struct Shared {
    pub dir: PathBuf,
    pub options: GuardOptions,
    /// As the guard was opened: a refresh changes only the generation.
    pub settings: Settings,
    pub live: ArcSwap<Generation>,
    /// Held while the counts of a stripe's hashes are changed.
    pub stripes: [Mutex<()>; STRIPES],
    pub in_flight: Mutex<InFlight>,
    pub refreshing: Mutex<()>,
    pub counters: GuardCounters,
    /// Whether every answer is "maybe": see [`Guard::suspend`](super::Guard::suspend).
    pub suspended: AtomicBool,
    /// Why the guard can no longer be changed: it is unknown which generation it would have when reopened.
    pub failure: OnceLock<Arc<str>>,
    /// The process that opened the guard. Others do not learn what it inserts.
    pub process: Process,
    pub _lock: Box<dyn LockGuard>,
}

/// Transactions and the refresh in progress.
#[derive(Default)]
pub(super) struct InFlight {
    /// Incremented when a refresh has taken its snapshot of the database.
    pub epoch: u64,
    /// The insertions of transactions that the database may or may not have committed by now.
    pub open: HashMap<u64, Vec<(StoredHash, ChangeKind)>>,
    pub next_transaction: u64,
    /// While a refresh is in progress.
    pub change_log: Option<ChangeLog>,
}

/// What changed since a refresh began, to apply to the generation that it builds.
#[derive(Default)]
pub(super) struct ChangeLog {
    pub changes: Vec<(StoredHash, ChangeKind)>,
    /// The first epoch whose transactions cannot have removed rows before the refresh's snapshot. `None`
    /// until the snapshot is taken.
    pub removals_from: Option<u64>,
}

impl ChangeLog {
    /// An insertion that did this in the live generation.
    pub fn push_insertion(&mut self, hash: StoredHash, kind: ChangeKind, done: Effect) {
        let kind = match kind {
            // Whether it was new is decided by the live generation.
            ChangeKind::InsertExpiring(_) if done == Effect::Nothing => return,
            ChangeKind::InsertExpiring(expiry) => ChangeKind::KeepExpiring(expiry),
            kind => kind,
        };
        self.changes.push((hash, kind));
    }

    /// A removal that did this in the live generation. The new one may lack the row that was removed: a
    /// removal that looked for an expiring key instead would deny one that the live generation keeps.
    pub fn push_removal(&mut self, hash: StoredHash, done: Effect, is_after_snapshot: bool) {
        if is_after_snapshot {
            self.changes.push((hash, ChangeKind::RemoveRow));
        }
        if done == Effect::Expiring {
            self.changes.push((hash, ChangeKind::RemoveExpiring));
        }
    }
}

impl Shared {
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Result<StoredHash> {
        let settings = &self.settings;
        Ok(StoredHash::of(&settings.canonical.apply(key)?, &settings.hasher, settings.width))
    }

    pub fn check_writable(&self) -> Result<()> {
        self.process.check()?;
        match self.failure.get() {
            Some(cause) => Err(Error::Poisoned { cause: Arc::clone(cause) }),
            None if self.options.read_only => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }
}
