//! Reads. Filters are asked where the request is handled, since that never waits for a read of the store's
//! data. Only a key that may be there goes to a thread that may block.

use crate::batches::Batches;
use sidebloom::filter::Verdict;
use sidebloom::{Db, Result, Value};
use std::panic::resume_unwind;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Reads at the same time, unless the command line says otherwise: about as many as the disk serves at once,
/// and far fewer than the 512 threads that tokio would start.
pub const THREADS: u32 = 32;

/// What happens to a key that may be there.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub enum Way {
    /// A blocking thread gets it
    #[default]
    Blocking,
    /// The thread of the request gets it. If the block is not in memory, all requests of that thread wait
    Inline,
    /// Keys that wait at the same time are read by one `multi_get` in a blocking thread
    Batched,
}

#[derive(Clone)]
pub struct Reads {
    db: Db,
    way: Way,
    bound: Arc<Semaphore>,
    threads: u32,
    batches: Batches,
}

impl Reads {
    /// Call it in a runtime.
    pub fn new(db: Db, way: Way, threads: u32) -> Self {
        let bound = Arc::new(Semaphore::new(threads as usize));
        let batches = Batches::start(db.clone(), if matches!(way, Way::Batched) { threads } else { 0 });
        Reads { db, way, bound, threads, batches }
    }

    pub async fn get(&self, key: String) -> Result<Option<Value>> {
        if self.db.may_contain(&key) == Verdict::Absent {
            return Ok(None);
        }
        match self.way {
            Way::Blocking => self.get_in_a_blocking_thread(key).await,
            Way::Inline => self.db.get(key),
            Way::Batched => self.batches.get(key).await,
        }
    }

    async fn get_in_a_blocking_thread(&self, key: String) -> Result<Option<Value>> {
        // Nobody closes the semaphore, so a permit always comes.
        let permit = self.bound.clone().acquire_owned().await.ok();
        let db = self.db.clone();
        let value = spawn_blocking(move || {
            let value = db.get(key);
            drop((db, permit));
            value
        });
        value.await.unwrap_or_else(|panicked| resume_unwind(panicked.into_panic()))
    }

    /// Waits until no read holds a handle of the store.
    pub async fn finish(self) {
        self.batches.finish().await;
        _ = self.bound.acquire_many(self.threads).await;
    }
}
