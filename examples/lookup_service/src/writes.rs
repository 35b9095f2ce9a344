//! Writes. Each waits for an fsync, and for a flush if writers are faster than the disk.

use axum::body::Bytes;
use sidebloom::Db;
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Writes at the same time. They share an fsync, so this is more than the disk can do at once.
const WRITES_MAX: u32 = 64;

#[derive(Clone)]
pub struct Writes {
    db: Db,
    bound: Arc<Semaphore>,
}

impl Writes {
    pub fn new(db: Db) -> Self {
        Writes { db, bound: Arc::new(Semaphore::new(WRITES_MAX as usize)) }
    }

    pub async fn put(&self, key: String, value: Bytes) -> sidebloom::Result<()> {
        // Nobody closes the semaphore, so a permit always comes.
        let permit = self.bound.clone().acquire_owned().await.ok();
        let db = self.db.clone();
        let written = spawn_blocking(move || {
            let written = db.put(key, value);
            drop((db, permit));
            written
        });
        written.await.unwrap_or_else(|panicked| resume_unwind(panicked.into_panic()))
    }

    /// Waits until no write holds a handle of the store.
    pub async fn finish(self) {
        _ = self.bound.acquire_many(WRITES_MAX).await;
    }
}
