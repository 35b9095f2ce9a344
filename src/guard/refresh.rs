//! A full rebuild beside the live guard, switched atomically.
//!
//! The database is read as of one moment M, while changes go on. A change has a place in the guard and one in the database, and may be
//! before M in one and after it in the other. Each is decided so that the new generation never counts too few:
//!
//! 1. *A*, before M: from here on every insertion goes on the tape, and so do those of transactions that are open now: their rows may
//!    be committed after M.
//! 2. The first key arrives: M has been. *B*: the epoch rises. A transaction that begins from here on deletes its rows after M, so its
//!    removals go on the tape too. Any other removal may be of a row that was gone at M, and is left out.
//! 3. The keys are sorted and become the next generation. The tape is played to it while it grows.
//! 4. With all changes kept out for a moment, the rest of the tape is played, the settings file names the new generation durably, and
//!    the questions go to it.
//!
//! A crash before the settings file is replaced leaves the old generation, which has every change; the next opening removes the rest.

use super::format::{Settings, remove_store};
use super::generation::{Generation, Op};
use super::handle::{Guard, Shared};
use super::hashed::Hashed;
use super::sort::Sorter;
use super::source::{Source, check_equality};
use super::write::Tape;
use crate::db::{Durability, lock, try_lock};
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A tape this short is played while changes wait.
const TAPE_SHORT: usize = 1000;

/// What a refresh has done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct RefreshReport {
    /// Rows of the database.
    pub rows: u64,
    /// Distinct keys among them.
    pub keys: u64,
    /// Time it took, in seconds.
    pub seconds: f64,
    /// Time that changes were kept out at the end, in seconds.
    pub switch_seconds: f64,
}

/// By how much the guard and its database had come apart. Rows that were committed while it ran may be counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct ReconcileReport {
    /// The refresh that mended it.
    pub refresh: RefreshReport,
    /// Keys of the database that the guard did not have: a wrong "no", from a writer that went around the guard.
    pub missing: u64,
    /// Keys that the guard had and the database does not: needless "maybe"s.
    pub surplus: u64,
    /// Keys that both have, with another number of rows.
    pub miscounted: u64,
}

impl Guard {
    /// Counts all rows of the database anew. The guard answers and takes changes meanwhile, and changes over at once at the end; on an
    /// error it stays as it was. Needs disk space for a second copy of the keys.
    ///
    /// # Errors
    /// The database's; [`Error::InvalidArgument`] while another refresh runs, for keys that the canonical form does not allow, and when
    /// the database takes more keys for one than the guard does ([`Source::equality`]); [`Error::Io`].
    pub fn refresh(&self, source: &mut dyn Source) -> Result<RefreshReport> {
        self.shared().refresh(source, |_, _| Ok(()))
    }

    /// [`refresh`](Self::refresh), with a comparison of what was there before and after: mends a guard after a crash between its own
    /// commit and the database's, or after writers that went around it.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
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
            return Err(Error::InvalidArgument("a refresh is running already: wait for its end".into()));
        };
        let started = Instant::now();
        self.start_tape();
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
                lock(&self.flux).tape = None;
                if self.failure.get().is_none()
                    && let Err(error) = remove_store(&*self.options.fs, &next.store(&self.dir))
                {
                    tracing::debug!(%error, "nothing of the failed refresh to remove, or it stays until the next opening");
                }
                return Err(error);
            }
        };
        Ok(RefreshReport { rows, keys, seconds: started.elapsed().as_secs_f64(), switch_seconds })
    }

    /// Step 1.
    fn start_tape(&self) {
        let mut flux = lock(&self.flux);
        let changes = flux.open.values().flatten().copied().collect();
        flux.tape = Some(Tape { changes, removals_from: None });
    }

    /// *B* of step 2. Returns the epoch from which removals count.
    fn mark_moment(&self) -> u64 {
        let mut flux = lock(&self.flux);
        flux.epoch += 1;
        let epoch = flux.epoch;
        if let Some(tape) = &mut flux.tape {
            tape.removals_from = Some(epoch);
        }
        epoch
    }

    /// Steps 2 and 3.
    fn build(&self, next: &Settings, source: &mut dyn Source) -> Result<Generation> {
        let mut sorter = Sorter::new(Arc::clone(&self.options.fs), &self.dir, next.width);
        let mut since = None;
        source.stream(&mut |key| {
            since.get_or_insert_with(|| self.mark_moment());
            sorter.push(self.hash(key)?)
        })?;
        let since = since.unwrap_or_else(|| self.mark_moment());
        let mut fresh = Generation::open(&self.dir, next, &self.options)?;
        fresh.since = since;
        fresh.fill(sorter, source.note().as_deref())?;
        while let changes = self.take_tape(TAPE_SHORT)
            && !changes.is_empty()
        {
            fresh.apply(&changes, None, Durability::Os)?;
        }
        Ok(fresh)
    }

    /// The changes on the tape, unless there are only `short` of them.
    fn take_tape(&self, short: usize) -> Vec<(Hashed, Op)> {
        let mut flux = lock(&self.flux);
        match &mut flux.tape {
            Some(tape) if tape.changes.len() > short => std::mem::take(&mut tape.changes),
            _ => Vec::new(),
        }
    }

    /// Step 4. Returns rows, keys, and the time that changes were kept out.
    fn switch(&self, next: &Settings, fresh: Generation) -> Result<(u64, u64, f64)> {
        let kept_out = self.lock_all_stripes();
        let started = Instant::now();
        let note = match fresh.note()? {
            None => self.live.load_full().note()?,
            Some(_) => None, // The source's own.
        };
        fresh.apply(&self.take_tape(0), note.as_deref(), Durability::Os)?;
        fresh.db.sync()?;
        if let Err(error) = next.write(&*self.options.fs, &self.dir) {
            // The file may name either generation: a change to one of them could be lost.
            let _ = self.failure.set(error.to_string().into());
            return Err(error);
        }
        let (rows, keys) = fresh.totals();
        let old = self.live.swap(Arc::new(fresh));
        lock(&self.flux).tape = None;
        drop(kept_out);
        let seconds = started.elapsed().as_secs_f64();
        self.retire(old);
        Ok((rows, keys, seconds))
    }

    /// Removes the old generation once the last question to it is answered.
    fn retire(&self, mut old: Arc<Generation>) {
        let path = Settings { generation: old.number, ..self.settings }.store(&self.dir);
        loop {
            match Arc::try_unwrap(old) {
                Ok(unused) => break drop(unused),
                Err(used) => old = used,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Err(error) = remove_store(&*self.options.fs, &path) {
            tracing::warn!(%error, "the keys of before a refresh stay until the guard is opened again");
        }
    }
}

/// Counts the keys that differ, by a merge of both.
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
