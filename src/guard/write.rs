//! Changing a guard: durable first, then visible in its answers.
//!
//! 1. Lock the stripes of the changed keys: one thread at a time reads, changes and writes a count.
//! 2. Write the changed counts and totals to the live generation's store, in one batch.
//! 3. Under `in_flight`, log the changes for a refresh that is in progress.

use super::changes::{ChangeKind, Changes, Effect};
use super::generation::STRIPES;
use super::handle::Guard;
use super::shared::Shared;
use super::stored_hash::StoredHash;
use crate::error::Result;
use crate::sync::{MutexGuard, lock};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::Relaxed;

/// How changes relate to a transaction of the database.
#[derive(Clone, Copy)]
pub(super) enum CommitPhase {
    /// Not part of one.
    Standalone,
    /// The insertions of a transaction, by its number, before the database commits.
    Before(u64),
    /// The removals of a transaction, after the database has committed. `began` is the epoch when it began.
    After { began: u64 },
}

impl Guard {
    /// Inserts a row with this key. Durable on return: commit the row to the database only after that.
    ///
    /// Use [`transaction`](Self::transaction) if a [`refresh`](Self::refresh) may run at the same time: one
    /// that reads the database between this call and the commit would miss the row.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::Error::InvalidArgument) for a key that the canonical form does not
    /// allow; the errors of [`Db::put`](crate::Keyspace::put). In both cases do not commit the row.
    pub fn insert(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(Changes::new().insert(key))
    }

    /// Removes a row with this key, after the database has committed its deletion. The key stays until its
    /// last row is removed. Removing a key that the guard does not have is no error;
    /// [`GuardStats::unknown_removals`](super::GuardStats) counts it.
    ///
    /// Use [`transaction`](Self::transaction) if a [`refresh`](Self::refresh) may run at the same time. A
    /// refresh that begins and ends between the deletion and this call does not count the row, so this call
    /// would remove another row with the same key.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert). The key then stays, which is safe.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(Changes::new().remove(key))
    }

    /// Inserts a key unless it exists. Returns whether it is new: if several threads insert the same key,
    /// exactly one gets `true`.
    ///
    /// For a guard that is itself a set of keys. For database rows, use [`insert`](Self::insert), which
    /// counts.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    pub fn insert_new(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.write_each(Changes::new().insert_new(key))?.contains(&true))
    }

    /// Applies several changes: all or none, even after a crash.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert). On error, nothing is applied.
    pub fn write(&self, changes: &Changes) -> Result<()> {
        self.write_each(changes).map(drop)
    }

    /// Like [`write`](Self::write). Returns for each change whether it changed a count: `false` for the
    /// removal of a missing key, and for [`insert_new`](Changes::insert_new) of an existing one.
    ///
    /// # Errors
    /// The errors of [`write`](Self::write).
    pub fn write_each(&self, changes: &Changes) -> Result<Vec<bool>> {
        let dated = |kind| match kind {
            // A refresh applies it again later.
            ChangeKind::InsertExpiring(expiry) => self.moment_of(expiry).map(ChangeKind::InsertExpiring),
            kind => Ok(kind),
        };
        let hash = |(kind, key)| Ok((self.shared().hash(key)?, dated(kind)?));
        let hashed: Vec<(StoredHash, ChangeKind)> = changes.iter().map(hash).collect::<Result<_>>()?;
        self.shared().apply(&hashed, changes.new_note(), CommitPhase::Standalone)
    }
}

impl Shared {
    /// Returns for each change that was not left out whether it changed a count.
    pub fn apply(
        &self,
        changes: &[(StoredHash, ChangeKind)],
        note: Option<&[u8]>,
        phase: CommitPhase,
    ) -> Result<Vec<bool>> {
        self.check_writable()?;
        let _stripes = self.lock_stripes(changes, note.is_some());
        let live = self.live.load_full();
        let is_certain = |kind| match phase {
            CommitPhase::After { began } => kind != ChangeKind::Remove || began >= live.since,
            CommitPhase::Standalone | CommitPhase::Before(_) => true,
        };
        let certain: Vec<_> = changes.iter().copied().filter(|(_, kind)| is_certain(*kind)).collect();
        let done = live.apply(&certain, note, self.options.durability)?;
        let unknown = certain
            .iter()
            .zip(&done)
            .filter(|((_, kind), done)| *kind == ChangeKind::Remove && **done == Effect::Nothing);
        self.counters.unknown_removals.fetch_add(unknown.count() as u64, Relaxed);
        let mut doubtful = changes.len() - certain.len();
        let mut in_flight = lock(&self.in_flight);
        if let Some(log) = &mut in_flight.change_log {
            let is_after = match phase {
                CommitPhase::After { began } => log.removals_from.is_some_and(|from| began >= from),
                CommitPhase::Standalone | CommitPhase::Before(_) => false,
            };
            let mut done = done.iter();
            for &(hash, kind) in changes {
                let done = if is_certain(kind) { done.next() } else { None };
                let done = done.copied().unwrap_or(Effect::Nothing);
                if kind == ChangeKind::Remove {
                    doubtful += usize::from(!is_after && done != Effect::Expiring);
                    log.push_removal(hash, done, is_after);
                } else {
                    log.push_insertion(hash, kind, done);
                }
            }
        }
        if let CommitPhase::Before(id) = phase {
            in_flight.open.insert(id, changes.to_vec());
        }
        self.counters.doubtful_removals.fetch_add(doubtful as u64, Relaxed);
        Ok(done.iter().map(|done| *done != Effect::Nothing).collect())
    }

    /// Locks all stripes that the changes touch, in order. A note counts as a change of the first stripe: a
    /// note written alone must not go to a generation that a refresh is about to replace.
    fn lock_stripes(&self, changes: &[(StoredHash, ChangeKind)], has_note: bool) -> Vec<MutexGuard<'_, ()>> {
        let of_note = has_note.then_some(0);
        let touched: BTreeSet<usize> =
            changes.iter().map(|(hash, _)| hash.stripe(STRIPES)).chain(of_note).collect();
        touched.into_iter().filter_map(|stripe| self.stripes.get(stripe)).map(lock).collect()
    }

    /// Locks out all changes.
    pub fn lock_all_stripes(&self) -> Vec<MutexGuard<'_, ()>> {
        self.stripes.iter().map(lock).collect()
    }
}
