//! What the threads of one execution share, and how they write.

use super::history::{Ingested, Model, assert_same};
use super::judge::{Call, objection};
use crate::contents::{batch_of, part_of, transact};
use crate::support::{Contents, Rng, SimFs, Strike};
use sidebloom::{Db, Durability, Error, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub struct Shared {
    /// Names the execution in messages.
    pub what: String,
    pub fs: SimFs,
    /// The number of faults before the present opening or repair. They explain nothing that it does.
    pub earlier: AtomicUsize,
    /// A lasting fault ends after this many errors.
    pub patience: u64,
    pub errors: AtomicU64,
    pub model: Mutex<Model>,
}

impl Shared {
    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The faults so far.
    pub fn strikes(&self) -> Vec<Strike> {
        self.fs.strikes()
    }

    /// Begins an opening or a repair.
    pub fn begin(&self) {
        self.earlier.store(self.strikes().len(), Relaxed);
    }

    /// The faults since the present opening or repair began.
    pub fn own_strikes(&self) -> Vec<Strike> {
        self.strikes().split_off(self.earlier.load(Relaxed))
    }

    /// Fails unless a fault explains the error of a call.
    #[track_caller]
    pub fn explain(&self, call: Call, error: &Error) {
        let strikes = self.own_strikes();
        if let Some(objection) = objection(call, error, &strikes) {
            let last = strikes.len().saturating_sub(5);
            panic!(
                "{}: {objection}; the last of {} faults since the opening: {:?}",
                self.what,
                strikes.len(),
                &strikes[last..]
            );
        }
        if self.errors.fetch_add(1, Relaxed) + 1 >= self.patience {
            self.fs.heal();
        }
    }

    /// The result of a read, if it succeeded.
    #[track_caller]
    pub fn read<T>(&self, result: Result<T>) -> Option<T> {
        result.inspect_err(|error| self.explain(Call::Read, error)).ok()
    }

    /// One attempt of a writer.
    #[track_caller]
    pub fn write(&self, db: &Db, writer: usize, durability: Durability) -> Result<()> {
        let (changes, before) = {
            let mut model = self.model();
            let before = model.last_acknowledged();
            (model.histories[writer].begin(), before)
        };
        let transacts = changes.len() % 4 == 3;
        let (call, result) = if transacts {
            (Call::Transact, transact(db, &changes, durability))
        } else {
            (Call::Write, db.write_with(batch_of(db, &changes), durability))
        };
        let mut model = self.model();
        model.histories[writer].end(&result);
        match &result {
            Ok(()) if durability == Durability::Sync => {
                self.note_synced(&mut model, &before);
                model.histories[writer].synced = model.histories[writer].last_acknowledged();
            }
            Ok(()) => {}
            Err(error) => self.explain(call, error),
        }
        result
    }

    /// Runs a call that makes everything durable that was acknowledged before it.
    #[track_caller]
    pub fn sync(&self, call: Call, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.model().last_acknowledged();
        let result = work();
        match &result {
            Ok(()) => self.note_synced(&mut self.model(), &before),
            Err(error) => self.explain(call, error),
        }
        result
    }

    fn note_synced(&self, model: &mut Model, before: &[u64]) {
        for (history, before) in model.histories.iter_mut().zip(before) {
            history.synced = history.synced.max(*before);
        }
    }

    /// A writer's own keys: some that it used and some that it did not.
    pub fn check_gets(&self, db: &Db, writer: usize, rng: &mut Rng) {
        for _ in 0..4 {
            let history = &self.model().histories[writer];
            let key = history.any_key(rng);
            let Some(found) = self.read(db.get(&key)) else { continue };
            let expected = history.live.get(&key);
            let shown = key.escape_ascii();
            assert_eq!(found.as_deref(), expected.map(Vec::as_slice), "{}: get \"{shown}\"", self.what);
        }
    }

    /// Fails if a row that has expired was found.
    #[track_caller]
    pub fn check_brief(&self, found: Result<Option<String>>) {
        if let Some(Some(wrong)) = self.read(found) {
            panic!("{}: {wrong}", self.what);
        }
    }

    /// The first writer's part of a walk, and the ingested rows.
    pub fn check_walk(&self, found: &Contents, how: &str) {
        let model = self.model();
        let mut mine = model.histories[0].part_of(found);
        mine.extend(part_of(found, Ingested::owns));
        let mut expected = model.ingested.live();
        expected.extend(model.histories[0].live.clone());
        assert_same(&mine, &expected, &format!("{}: {how}", self.what));
    }
}
