//! A full rebuild next to the live guard, with an atomic switch at the end.
//!
//! The database is read in one snapshot while changes continue. A change reaches the guard and the database
//! at different moments, so it may be before the snapshot in one and after it in the other. Each is resolved
//! so that the new generation never counts too few rows:
//!
//! 1. Before the snapshot: every insertion is logged from now on. So are the insertions of transactions open
//!    now, because their rows may be committed after the snapshot.
//! 2. The first key arrives, so the snapshot has been taken. The epoch is incremented. A transaction that
//!    begins from now on deletes its rows after the snapshot, so its removals are logged too. Any other
//!    removal may be of a row that the snapshot no longer had, and is left out. No snapshot has the keys that
//!    expire, so each of their removals is logged.
//! 3. The keys are sorted and become the next generation, with the keys that expire. The log is applied to it
//!    as it grows.
//! 4. While all changes are locked out for a moment, the rest of the log is applied, the settings file
//!    durably names the new generation, and lookups switch to it.
//!
//! A crash before the settings file is replaced leaves the old generation, which has every change; the next
//! open removes the new one.

use super::changes::ChangeKind;
use super::format::Settings;
use super::generation::Generation;
use super::handle::Guard;
use super::hash_sorter::HashSorter;
use super::leftovers::remove_store;
use super::shared::{ChangeLog, Shared};
use super::source::{Source, check_equality};
use super::stored_hash::StoredHash;
use crate::error::{Error, Result};
use crate::options::Durability;
use crate::sync::{Instant, lock, try_lock};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// A log of at most this many changes is applied while other changes wait.
const SHORT_LOG: usize = 1000;

/// The outcome of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct RefreshReport {
    /// Rows of the database.
    pub rows: u64,
    /// Distinct keys of these rows.
    pub keys: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// How long changes were locked out at the end, in seconds.
    pub switch_seconds: f64,
}

/// How far the guard and its database had diverged. Rows committed while it ran may be counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct ReconcileReport {
    /// The refresh that repaired it.
    pub refresh: RefreshReport,
    /// Keys of the database that the guard lacked: wrong "no" answers, caused by a writer that bypassed it.
    pub missing: u64,
    /// Keys that the guard had and the database does not: needless "maybe" answers.
    pub surplus: u64,
    /// Keys that both have, with different numbers of rows.
    pub miscounted: u64,
}

impl Guard {
    /// Counts all rows of the database again. The guard still answers and accepts changes, and switches to
    /// the new counts atomically at the end; on an error it stays as it was. Needs disk space for a second
    /// copy of the keys.
    ///
    /// # Errors
    /// The database's errors; [`Error::InvalidArgument`] while another refresh runs, for keys that the
    /// canonical form does not allow, and when the database treats keys as equal that the guard distinguishes
    /// ([`Source::equality`]); [`Error::Io`].
    pub fn refresh(&self, source: &mut dyn Source) -> Result<RefreshReport> {
        self.shared().refresh(source, |_, _| Ok(()))
    }

    /// [`refresh`](Self::refresh), and a comparison of before and after. Repairs a guard after a crash
    /// between its own commit and the database's, or after writers that bypassed it.
    ///
    /// # Errors
    /// The errors of [`refresh`](Self::refresh).
    pub fn reconcile(&self, source: &mut dyn Source) -> Result<ReconcileReport> {
        let mut report = ReconcileReport::default();
        let refresh = self.shared().refresh(source, |before, after| compare(before, after, &mut report))?;
        Ok(ReconcileReport { refresh, ..report })
    }
}

impl Shared {
    fn refresh(
        &self,
        source: &mut dyn Source,
        inspect: impl FnOnce(&Generation, &Generation) -> Result<()>,
    ) -> Result<RefreshReport> {
        self.check_writable()?;
        check_equality(self.settings.canonical, source)?;
        let Some(_only) = try_lock(&self.refreshing) else {
            return Err(Error::InvalidArgument("a refresh is already running: wait until it ends".into()));
        };
        let started = Instant::now();
        self.start_log();
        let live = self.live.load_full();
        let next = Settings { generation: live.number + 1, ..self.settings };
        let built = self.build(&next, source).and_then(|fresh| {
            inspect(&live, &fresh)?;
            Ok(fresh)
        });
        drop(live);
        let (rows, keys, switch_seconds) = match built.and_then(|fresh| self.switch(&next, fresh)) {
            Ok(done) => done,
            Err(error) => {
                lock(&self.in_flight).change_log = None;
                if self.failure.get().is_none()
                    && let Err(error) = remove_store(&self.options.fs, &next.store(&self.dir))
                {
                    tracing::debug!(%error, "cannot remove the files of the failed refresh, if any; the next open will retry");
                }
                return Err(error);
            }
        };
        Ok(RefreshReport { rows, keys, seconds: started.elapsed().as_secs_f64(), switch_seconds })
    }

    /// Step 1.
    fn start_log(&self) {
        let mut in_flight = lock(&self.in_flight);
        let changes = in_flight.open.values().flatten().copied().collect();
        in_flight.change_log = Some(ChangeLog { changes, removals_from: None });
    }

    /// The epoch of step 2, from which removals count.
    fn mark_snapshot(&self) -> u64 {
        let mut in_flight = lock(&self.in_flight);
        in_flight.epoch += 1;
        let epoch = in_flight.epoch;
        if let Some(log) = &mut in_flight.change_log {
            log.removals_from = Some(epoch);
        }
        epoch
    }

    /// Steps 2 and 3.
    fn build(&self, next: &Settings, source: &mut dyn Source) -> Result<Generation> {
        let mut sorter = HashSorter::new(&self.options.fs, &self.dir, next.width);
        let mut since = None;
        source.stream(&mut |key| {
            since.get_or_insert_with(|| self.mark_snapshot());
            sorter.push(self.hash(key)?)
        })?;
        let since = since.unwrap_or_else(|| self.mark_snapshot());
        let mut fresh = Generation::open(&self.dir, next, &self.options)?;
        fresh.since = since;
        fresh.fill(sorter, source.note().as_deref())?;
        fresh.keep_expiring(&self.live.load_full())?;
        while let changes = self.take_log(SHORT_LOG)
            && !changes.is_empty()
        {
            fresh.apply(&changes, None, Durability::Os)?;
        }
        Ok(fresh)
    }

    /// Takes the logged changes, if there are more than `more_than`.
    fn take_log(&self, more_than: usize) -> Vec<(StoredHash, ChangeKind)> {
        let mut in_flight = lock(&self.in_flight);
        match &mut in_flight.change_log {
            Some(log) if log.changes.len() > more_than => std::mem::take(&mut log.changes),
            _ => Vec::new(),
        }
    }

    /// Step 4. Returns rows, keys, and how long changes were locked out.
    fn switch(&self, next: &Settings, fresh: Generation) -> Result<(u64, u64, f64)> {
        let locked_out = self.lock_all_stripes();
        let started = Instant::now();
        let note = match fresh.note()? {
            None => self.live.load_full().note()?,
            Some(_) => None, // The source's own.
        };
        fresh.apply(&self.take_log(0), note.as_deref(), Durability::Os)?;
        fresh.db.sync()?;
        if let Err(error) = next.write(&*self.options.fs, &self.dir) {
            // The file may name either generation, so a change to one of them could be lost.
            let _ = self.failure.set(error.to_string().into());
            return Err(error);
        }
        let (rows, keys) = fresh.totals();
        let old = self.live.swap(Arc::new(fresh));
        lock(&self.in_flight).change_log = None;
        drop(locked_out);
        let seconds = started.elapsed().as_secs_f64();
        self.retire(old);
        Ok((rows, keys, seconds))
    }

    /// Removes the old generation once its last lookup has ended.
    fn retire(&self, mut old: Arc<Generation>) {
        let path = Settings { generation: old.number, ..self.settings }.store(&self.dir);
        loop {
            match Arc::try_unwrap(old) {
                Ok(unused) => break drop(unused),
                Err(used) => old = used,
            }
            crate::sync::sleep(Duration::from_millis(1));
        }
        if let Err(error) = remove_store(&self.options.fs, &path) {
            tracing::warn!(%error, "cannot remove the keys of the previous generation; the next open will retry");
        }
    }
}

/// Counts the keys that differ, by merging both.
fn compare(before: &Generation, after: &Generation, report: &mut ReconcileReport) -> Result<()> {
    let (mut before, mut after) = (before.rows(), after.rows());
    let (mut old, mut new) = (before.next().transpose()?, after.next().transpose()?);
    loop {
        let order = match (&old, &new) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        match order {
            Ordering::Less => report.surplus += 1,
            Ordering::Greater => report.missing += 1,
            Ordering::Equal => report.miscounted += u64::from(old != new),
        }
        if order != Ordering::Greater {
            old = before.next().transpose()?;
        }
        if order != Ordering::Less {
            new = after.next().transpose()?;
        }
    }
}
