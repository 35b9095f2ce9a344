//! Keys that wait at the same time, read by one `multi_get`. The load test compares this with a blocking
//! thread for each key; nothing else uses it.

use sidebloom::{Db, Result, Value};
use std::sync::Arc;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};

/// Keys in a batch, and keys that wait for a thread.
const KEYS_MAX: usize = 64;

/// A key, and who waits for its value.
type Waiting = (String, oneshot::Sender<Result<Option<Value>>>);

#[derive(Clone)]
pub struct Batches {
    queue: mpsc::Sender<Waiting>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Batches {
    /// As many batches are read at the same time as there are threads.
    pub fn start(db: Db, threads: u32) -> Self {
        let (queue, receiver) = mpsc::channel(KEYS_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |_| {
            let (db, receiver) = (db.clone(), receiver.clone());
            spawn_blocking(move || read_batches(&db, &receiver))
        };
        Batches { queue, threads: Arc::new(Mutex::new((0..threads).map(start).collect())) }
    }

    pub async fn get(&self, key: String) -> Result<Option<Value>> {
        let (sender, value) = oneshot::channel();
        // Fails if all threads have panicked. Then there is no answer either.
        _ = self.queue.send((key, sender)).await;
        value.await.unwrap_or_else(|_| panic_of_a_thread())
    }

    /// Waits until no thread holds a handle of the store.
    pub async fn finish(self) {
        drop(self.queue);
        for thread in self.threads.lock().await.drain(..) {
            _ = thread.await;
        }
    }
}

#[expect(clippy::panic, reason = "a panic of a reading thread is one of the request that waits for it")]
fn panic_of_a_thread() -> ! {
    panic!("a thread that reads has panicked")
}

/// Takes what waits, reads it, and answers, until nobody can ask any more.
fn read_batches(db: &Db, queue: &Mutex<mpsc::Receiver<Waiting>>) {
    let mut batch = Vec::with_capacity(KEYS_MAX);
    while queue.blocking_lock().blocking_recv_many(&mut batch, KEYS_MAX) > 0 {
        let (keys, senders): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        let values: Vec<Result<Option<Value>>> = match db.multi_get(&keys) {
            Ok(values) => values.into_iter().map(Ok).collect(),
            // One damaged block must not fail the other keys.
            Err(_) => keys.iter().map(|key| db.get(key)).collect(),
        };
        // Sending fails if the client has gone.
        senders.into_iter().zip(values).for_each(|(sender, value)| _ = sender.send(value));
    }
}
