//! The stream through one store, and the process that runs it.

use super::kind::StoreKind;
use super::record::{WindowFigures, WindowSettings};
use crate::child;
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The hidden command that runs a task.
const COMMAND: &str = "window-worker";

/// A store, and what it needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub struct WindowTask {
    /// The store.
    pub store: StoreKind,
    /// Its directory.
    pub dir: PathBuf,
    /// Sizes and counts.
    pub settings: WindowSettings,
    /// RedisBloom's module.
    pub redisbloom: Option<PathBuf>,
}

impl WindowTask {
    /// Runs it in a new process.
    pub fn spawn(&self) -> Result<WindowFigures> {
        let output = child::run(COMMAND, self)?;
        if !output.status.success() {
            return Err(format!("the stream through {} failed ({})", self.store.name(), output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
