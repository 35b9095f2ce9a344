//! The writer: from a batch to the log and the memtable, and from a full memtable to a segment.

mod close_writes;
pub(crate) mod commit;
pub(crate) mod condition;
mod expecting;
mod first_write;
mod flush;
mod in_flight;
mod ingest;
pub(crate) mod log;
mod recent;
mod rotate;
mod stale;
mod submit;

use self::in_flight::InFlight;
use self::log::{InheritedLogs, Log, QueuedBatch};
use super::filters::FilterKeeper;
use super::publish::Publisher;
use super::shared::Shared;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Mutex, try_lock};
use std::sync::Arc;

/// Writes the log and the memtables.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    filters: Arc<FilterKeeper>,
    log: Mutex<Log>,
    /// Batches that wait for the log, oldest first.
    queue: Mutex<Vec<Arc<QueuedBatch>>>,
    /// The number of writers that wait for the log.
    waiting: AtomicUsize,
    in_flight: InFlight,
    /// Shared with the transactions that commit and need the latest batches.
    readers_of_recent: Arc<()>,
}

impl Writer {
    /// Continues after the logs of earlier opens. Without any, the store is read-only.
    pub fn new(
        shared: Arc<Shared>,
        publisher: Arc<Publisher>,
        filters: Arc<FilterKeeper>,
        logs: Option<InheritedLogs>,
    ) -> Self {
        let log = Mutex::new(logs.map_or(Log::None, Log::Inherited));
        Writer {
            shared,
            publisher,
            filters,
            log,
            queue: Mutex::default(),
            waiting: AtomicUsize::new(0),
            in_flight: InFlight::default(),
            readers_of_recent: Arc::new(()),
        }
    }

    /// As long as the result lives, the log keeps its latest batches, so that it knows whether they change
    /// what a transaction has read.
    pub fn keep_recent(&self) -> KeptRecent<'_> {
        KeptRecent { writer: self, reader: Some(Arc::clone(&self.readers_of_recent)) }
    }

    #[inline]
    fn keeps_recent(&self) -> bool {
        Arc::strong_count(&self.readers_of_recent) > 1
    }
}

/// Lets the log keep its latest batches.
pub(crate) struct KeptRecent<'w> {
    writer: &'w Writer,
    reader: Option<Arc<()>>,
}

impl Drop for KeptRecent<'_> {
    fn drop(&mut self) {
        self.reader = None;
        // If the log is in use, the next group forgets them.
        if !self.writer.keeps_recent()
            && let Some(mut log) = try_lock(&self.writer.log)
            && let Log::Active(log) = &mut *log
        {
            log.recent.clear();
        }
    }
}
