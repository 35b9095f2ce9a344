//! The steps of an execution, each on every store in turn.

use super::kind::StoreKind;
use super::record::{CheckFigures, KeyspacesRecord, LoadFigures, StoreResult};
use super::task::{SpaceTask, Step};
use crate::error::Result;
use crate::kernel;
use crate::output::StoreDirs;
use crate::quiet::{self, CpuSample};
use crate::terminal::progress;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;

/// An execution in progress. Its stores are removed at its end, also after an error.
pub struct Comparison {
    /// What has been measured so far.
    pub record: KeyspacesRecord,
    dirs: StoreDirs,
}

impl Comparison {
    /// An execution whose stores are in subdirectories of `dir`.
    pub fn new(record: KeyspacesRecord, dir: &Path) -> Result<Self> {
        let names = record.stores.iter().map(|of| of.store.directory().to_owned());
        let dirs = StoreDirs::none_there(dir, names)?;
        Ok(Comparison { record, dirs })
    }

    /// Runs a step on every store in turn.
    fn step<T: DeserializeOwned>(
        &mut self,
        step: Step,
        suits: fn(StoreKind) -> bool,
        keep: fn(&mut StoreResult, T),
    ) -> Result<()> {
        for at in 0..self.record.stores.len() {
            let store = self.record.stores[at].store;
            if suits(store) {
                progress(&format!("{step:?}: {}", store.name()));
                let dir = self.dirs.dir(store.directory());
                let task = SpaceTask { store, dir, settings: self.record.settings.clone(), step };
                keep(&mut self.record.stores[at], task.spawn()?);
            }
        }
        Ok(())
    }

    fn on_all<T: DeserializeOwned>(&mut self, step: Step, keep: fn(&mut StoreResult, T)) -> Result<()> {
        self.step(step, |_| true, keep)
    }

    /// Removes the stores, so that the next step begins with new ones.
    fn remove_stores(&self) -> Result<()> {
        for of in &self.record.stores {
            let dir = self.dirs.dir(of.store.directory());
            if dir.exists() {
                fs::remove_dir_all(dir)?;
            }
        }
        Ok(())
    }

    /// Three large keyspaces.
    pub fn measure_large(&mut self) -> Result<()> {
        let (begin, rounds) = (CpuSample::now(), self.record.settings.rounds);
        self.on_all(Step::Load, |of, load: LoadFigures| of.load = Some(load))?;
        self.on_all(Step::Check, |of, checked: CheckFigures| of.checked = Some(checked))?;
        for round in 0..rounds {
            self.on_all(Step::Lookups { round }, |of, lookups| of.lookups.push(lookups))?;
        }
        for round in 0..rounds {
            self.on_all(Step::Batches { round }, |of, batches| of.batches.push(batches))?;
        }
        self.note_others("the large keyspaces", &begin);
        self.remove_stores()
    }

    /// Many small keyspaces.
    pub fn measure_small(&mut self) -> Result<()> {
        let begin = CpuSample::now();
        for _ in 0..self.record.settings.rounds {
            let together = |kind: StoreKind| kind.creates_together();
            self.step(Step::CreateTogether, together, |of, created| of.together.push(created))?;
            self.remove_stores()?;
            self.on_all(Step::FillSmall, |of, small| of.small.push(small))?;
            self.on_all(Step::OpenSmall, |of, opened| of.opened.push(opened))?;
            self.remove_stores()?;
        }
        self.note_others("the small keyspaces", &begin);
        Ok(())
    }

    /// Dropping a keyspace.
    pub fn measure_drop(&mut self) -> Result<()> {
        let begin = CpuSample::now();
        if kernel::is_memory(&self.dirs.root) {
            let note = "drops read nothing from disk: the stores are in a memory-backed file system";
            self.record.notes.push(note.to_owned());
        }
        for _ in 0..self.record.settings.rounds {
            self.on_all(Step::LoadToDrop, |_, _: LoadFigures| {})?;
            self.on_all(Step::Drop, |of, dropped| of.dropped.push(dropped))?;
            self.on_all(Step::CheckDrop, |_, _: CheckFigures| {})?;
            self.remove_stores()?;
        }
        self.note_others("the drops", &begin);
        Ok(())
    }

    fn note_others(&mut self, during: &str, begin: &CpuSample) {
        self.record.notes.extend(quiet::note_of_others(during, begin));
    }
}
