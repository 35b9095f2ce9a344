//! Checkpoints of all filters, which `SAVE` and `BGSAVE` write.

use crate::filters::Filters;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where checkpoints go, and when the last one was complete.
pub struct Checkpoints {
    /// Each is a directory in this one, named by its time. `None` if there are none.
    dir: Option<PathBuf>,
    /// Seconds since 1970.
    pub latest: AtomicU64,
    is_writing: AtomicBool,
}

/// The right to write one.
pub struct Started {
    checkpoints: Arc<Checkpoints>,
    dir: PathBuf,
}

impl Checkpoints {
    pub fn new(dir: Option<PathBuf>) -> Self {
        Checkpoints { dir, latest: AtomicU64::new(now().as_secs()), is_writing: AtomicBool::new(false) }
    }

    /// Begins one, unless one is being written.
    pub fn start(self: &Arc<Self>) -> Result<Started, String> {
        let Some(dir) = self.dir.clone() else {
            return Err("ERR no directory for checkpoints: start the server with --checkpoints DIR".into());
        };
        if self.is_writing.swap(true, AcqRel) {
            return Err("ERR Background save already in progress".into());
        }
        Ok(Started { checkpoints: Arc::clone(self), dir })
    }
}

impl Started {
    pub fn write(self, filters: &Filters) -> Result<(), String> {
        let time = now();
        let target = self.dir.join(time.as_millis().to_string());
        filters.db().checkpoint(&target).map_err(|error| format!("ERR {error}"))?;
        self.checkpoints.latest.store(time.as_secs(), Relaxed);
        tracing::info!(checkpoint = %target.display(), "saved all filters");
        Ok(())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.checkpoints.is_writing.store(false, Release);
    }
}

fn now() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
