//! A step on one store, and the process that runs it.

use super::kind::StoreKind;
use super::record::KeyspaceSettings;
use super::rows::RowGenerator;
use super::store::{KeyspaceStore, OpenSpec, SpaceSpec};
use super::stores;
use crate::child;
use crate::error::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The hidden command that runs a task.
const COMMAND: &str = "keyspace-worker";

/// A step on one store.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Load three large keyspaces.
    Load,
    /// Find every loaded row, and no row that was not loaded.
    Check,
    /// Look up keys.
    Lookups { round: u64 },
    /// Write a row to each of the three keyspaces at once.
    Batches { round: u64 },
    /// Create small keyspaces one by one, and fill them.
    FillSmall,
    /// Create small keyspaces with one call.
    CreateTogether,
    /// Open the store with all small keyspaces.
    OpenSmall,
    /// Load a keyspace to drop, and another one.
    LoadToDrop,
    /// Drop one, and create another with its name.
    Drop,
    /// Find what must be left after the drop.
    CheckDrop,
}

/// A step, and what it needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct SpaceTask {
    /// The store.
    pub store: StoreKind,
    /// Its directory.
    pub dir: PathBuf,
    /// Sizes and counts.
    pub settings: KeyspaceSettings,
    /// What to do.
    pub step: Step,
}

impl SpaceTask {
    /// Opens the store. `rows` is how many rows all of its keyspaces can have.
    pub fn open(&self, specs: &[SpaceSpec], small: Option<u64>, rows: u64) -> Result<Box<dyn KeyspaceStore>> {
        stores::open(self.store, &self.dir, OpenSpec { settings: &self.settings.bench, small, rows }, specs)
    }

    /// The rows of this many keyspaces.
    pub fn rows(&self, spaces: usize) -> RowGenerator {
        RowGenerator::new(spaces, self.settings.bench.seed)
    }

    /// Runs the step in a new process.
    pub fn spawn<T: DeserializeOwned>(&self) -> Result<T> {
        let output = child::run(COMMAND, self)?;
        if !output.status.success() {
            let (step, store) = (self.step, self.store.name());
            return Err(format!("{step:?} of {store} failed ({})", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
