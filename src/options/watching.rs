//! What a store records for those who watch it, and whom it tells.

use super::Options;
use super::event_callback::EventCallback;
use crate::event::Event;

impl Options {
    /// Whether to record how long operations take: [`Stats::latencies`](crate::Stats::latencies). Default
    /// false.
    ///
    /// Of the [`get`](crate::Keyspace::get)s, each thread times one in 64 on average, with random gaps: a
    /// missing key then takes about 2 % longer, where timing each would double its time. Writes, syncs and
    /// stalls are all timed. The histograms take 800 KiB.
    pub fn latency_histograms(mut self, record: bool) -> Self {
        self.latency_histograms = record;
        self
    }

    /// Calls `callback` with each [`Event`] of the store, for programs without
    /// [`tracing`](https://docs.rs/tracing), which gets the same events in any case.
    ///
    /// One thread of the store calls it, with one event after the other, and holds no lock: it may use the
    /// store, and may take its time. Up to 1024 events wait for it; if there are more, the newest are dropped
    /// and counted in [`Stats::events_dropped`](crate::Stats::events_dropped). If it panics, that is logged,
    /// and it is called with the next event. Closing the store waits until it was called with all events,
    /// unless the callback itself closes the store. A forked process calls nothing.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()
    /// #     .map_err(|e| sidebloom::Error::io(sidebloom::IoOp::Create, "a temporary directory", e))?;
    /// use sidebloom::{Event, Options};
    ///
    /// let options = Options::new().on_event(|event| match event {
    ///     Event::Quarantine { file, error, .. } => eprintln!("{file} is damaged: {error}"),
    ///     Event::LongStall { .. } => eprintln!("writes have waited for a second"),
    ///     other => println!("{}", other.name()),
    /// });
    /// let db = options.open(dir.path().join("store"))?;
    /// # Ok::<(), sidebloom::Error>(())
    /// ```
    pub fn on_event(mut self, callback: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(EventCallback::new(callback));
        self
    }
}
