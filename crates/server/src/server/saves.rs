//! Copies of all filters, which `SAVE` and `BGSAVE` make: backups, or checkpoints.

use crate::filters::Filters;
use sidebloom::backup::Repository;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where `SAVE` and `BGSAVE` write to.
#[derive(Debug, Clone)]
pub enum SaveTo {
    /// Backups in a repository.
    Backups {
        /// The repository's directory.
        dir: PathBuf,
        /// How many stay; `None` for all.
        keep: Option<u64>,
    },
    /// Checkpoints: each is a directory in this one, named by its time.
    Checkpoints(PathBuf),
}

/// Where copies go, and what became of the last one.
pub struct Saves {
    to: Option<SaveTo>,
    /// When the last one was complete, or the server started, in seconds since 1970.
    pub latest: AtomicU64,
    is_saving: AtomicBool,
    has_failed: AtomicBool,
    /// How long the last one took, in seconds plus one; 0 before the first.
    took: AtomicU64,
}

/// The right to make one.
pub struct Started {
    saves: Arc<Saves>,
    to: SaveTo,
}

impl Saves {
    pub fn new(to: Option<SaveTo>) -> Self {
        Saves {
            to,
            latest: AtomicU64::new(now().as_secs()),
            is_saving: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            took: AtomicU64::new(0),
        }
    }

    /// Begins one, unless one is being made.
    pub fn start(self: &Arc<Self>) -> Result<Started, String> {
        let Some(to) = self.to.clone() else {
            return Err(
                "ERR no directory for backups or checkpoints: start the server with --backups DIR or --checkpoints DIR"
                    .into(),
            );
        };
        if self.is_saving.swap(true, AcqRel) {
            return Err("ERR Background save already in progress".into());
        }
        Ok(Started { saves: Arc::clone(self), to })
    }

    /// Whether one is being made.
    pub fn is_saving(&self) -> bool {
        self.is_saving.load(Relaxed)
    }

    /// Whether the last one that ended was complete; `true` before the first.
    pub fn last_was_complete(&self) -> bool {
        !self.has_failed.load(Relaxed)
    }

    /// How long the last one took, in seconds; -1 before the first.
    pub fn last_took(&self) -> i64 {
        i64::try_from(self.took.load(Relaxed)).map_or(i64::MAX, |took| took - 1)
    }
}

impl Started {
    pub fn write(self, filters: &Filters) -> Result<(), String> {
        let (started, time) = (Instant::now(), now());
        let saved = self.save(filters, time.as_millis());
        self.saves.took.store(started.elapsed().as_secs() + 1, Relaxed);
        self.saves.has_failed.store(saved.is_err(), Relaxed);
        saved.map_err(|error| format!("ERR {error}"))?;
        self.saves.latest.store(now().as_secs(), Relaxed);
        Ok(())
    }

    fn save(&self, filters: &Filters, millis: u128) -> sidebloom::Result<()> {
        match &self.to {
            SaveTo::Checkpoints(dir) => {
                let target = dir.join(millis.to_string());
                filters.db().checkpoint(&target)?;
                tracing::info!(checkpoint = %target.display(), "saved all filters");
            }
            SaveTo::Backups { dir, keep } => {
                let repository = Repository::in_dir(dir)?;
                let backup = filters.db().backup(&repository)?;
                tracing::info!(backups = %dir.display(), number = backup.number, "saved all filters");
                let kept = keep.map_or(Ok(()), |count| repository.keep(count).map(drop));
                if let Err(error) = kept {
                    tracing::warn!(%error, "the backup is complete, but older ones were not removed");
                }
            }
        }
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.saves.is_saving.store(false, Release);
    }
}

fn now() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
