//! Sends the stream through one store, in the process of its own.

use super::record::{WindowFigures, WindowSettings};
use super::store::{Answers, OpenSpec, WindowStore};
use super::stores;
use super::stream::{CHUNK, Event, StreamClock};
use super::task::WindowTask;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use hdrhistogram::Histogram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How often disk space is sampled.
const SAMPLE: Duration = Duration::from_millis(250);

/// What the threads share.
struct Shared<'s> {
    store: &'s dyn WindowStore,
    settings: &'s WindowSettings,
    clock: &'s StreamClock,
    next: AtomicU64,
    /// When the first window was over.
    full: std::sync::OnceLock<Instant>,
    has_ended: AtomicBool,
}

/// A count of the answers to one thread.
struct Tally {
    inserted: u64,
    wrongly_new: u64,
    wrongly_seen: u64,
    nanos: Histogram<u64>,
}

/// Samples of disk space.
#[derive(Default)]
struct Disk {
    sum: u64,
    samples: u64,
    max: u64,
}

/// Runs the task.
pub fn run(task: &WindowTask) -> Result<WindowFigures> {
    let (settings, clock) = (&task.settings, Arc::new(StreamClock::default()));
    clock.pass_to(settings.stream.millis_at(0));
    let (dir, bench) = (task.dir.as_path(), &settings.bench);
    let how = OpenSpec {
        dir,
        settings: bench,
        clock: Arc::clone(&clock),
        stream: settings.stream,
        redisbloom: task.redisbloom.as_deref(),
    };
    let store = stores::open(task.store, &how, settings.threads)?;
    let shared = Shared {
        store: store.as_ref(),
        settings,
        clock: &clock,
        next: AtomicU64::new(0),
        full: std::sync::OnceLock::new(),
        has_ended: AtomicBool::new(false),
    };
    let (before, begin) = (ResourceCounters::now(dir), Instant::now());
    let (tally, disk, end) = stream_through(&shared, dir)?;
    let full = shared.full.get().copied().unwrap_or(end);
    let (held, memory_bytes) = (store.held()?, kernel::resident_memory().0);
    let settling = Instant::now();
    store.finish()?;
    let settle_ns = settling.elapsed().as_nanos() as u64;
    let percentile = |share: f64| tally.nanos.value_at_quantile(share);
    let is_timed = !tally.nanos.is_empty();
    Ok(WindowFigures {
        stream_ns: (end - begin).as_nanos() as u64,
        full_ns: (end - full).as_nanos() as u64,
        settle_ns,
        inserted: tally.inserted,
        wrongly_new: tally.wrongly_new,
        wrongly_seen: if task.store.forgets() { tally.wrongly_seen } else { 0 },
        latencies: is_timed.then(|| [0.5, 0.999, 0.9999].map(percentile)),
        used: ResourceCounters::now(dir).since(before),
        disk_bytes_mean: disk.sum / disk.samples.max(1),
        disk_bytes_max: disk.max,
        held,
        memory_bytes,
    })
}

/// Returns the count of the answers, and when the last one came.
fn stream_through(shared: &Shared<'_>, dir: &Path) -> Result<(Tally, Disk, Instant)> {
    std::thread::scope(|scope| {
        let sampling = scope.spawn(|| shared.sample_disk(dir));
        let threads: Vec<_> =
            (0..shared.settings.threads).map(|thread| scope.spawn(move || shared.run(thread))).collect();
        let mut all = Tally::new()?;
        let mut failed = None;
        for thread in threads {
            match thread.join().map_err(|_| "a thread panicked")? {
                Ok(tally) => all.add(&tally)?,
                Err(error) => failed = Some(error),
            }
        }
        let end = Instant::now();
        shared.has_ended.store(true, Relaxed);
        let disk = sampling.join().map_err(|_| "the sampling thread panicked")?;
        failed.map_or(Ok((all, disk, end)), Err)
    })
}

impl Tally {
    fn new() -> Result<Self> {
        Ok(Tally { inserted: 0, wrongly_new: 0, wrongly_seen: 0, nanos: Histogram::new(3)? })
    }

    fn add(&mut self, other: &Tally) -> Result<()> {
        self.inserted += other.inserted;
        self.wrongly_new += other.wrongly_new;
        self.wrongly_seen += other.wrongly_seen;
        Ok(self.nanos.add(&other.nanos)?)
    }

    fn note(&mut self, event: &Event, is_new: bool) {
        self.inserted += u64::from(is_new);
        self.wrongly_new += u64::from(is_new && !event.is_new);
        self.wrongly_seen += u64::from(!is_new && event.is_new);
    }
}

impl Shared<'_> {
    fn run(&self, thread: usize) -> Result<Tally> {
        let stream = self.settings.stream;
        let (mut tally, mut answers, mut events) = (Tally::new()?, Answers::default(), Vec::new());
        loop {
            let first = self.next.fetch_add(CHUNK, Relaxed);
            if first >= stream.total {
                return Ok(tally);
            }
            if first >= stream.window && self.full.set(Instant::now()).is_ok() {
                self.store.window_is_full()?;
            }
            self.clock.pass_to(stream.millis_at(first));
            answers.are_new.clear();
            answers.nanos.clear();
            events.clear();
            events.extend((first..stream.total.min(first + CHUNK)).map(|position| stream.event(position)));
            self.store.first_seen(thread, &events, &mut answers)?;
            for (event, is_new) in events.iter().zip(&answers.are_new) {
                tally.note(event, *is_new);
            }
            if first >= stream.window {
                answers.nanos.iter().try_for_each(|&nanos| tally.nanos.record(nanos))?;
            }
        }
    }

    fn sample_disk(&self, dir: &Path) -> Disk {
        let mut disk = Disk::default();
        while !self.has_ended.load(Relaxed) {
            std::thread::sleep(SAMPLE);
            if self.full.get().is_some() {
                let bytes = kernel::disk_bytes(dir);
                disk.sum += bytes;
                disk.samples += 1;
                disk.max = disk.max.max(bytes);
            }
        }
        disk
    }
}
