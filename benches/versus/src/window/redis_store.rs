//! Redis: `SET id value NX PX life`.
//!
//! Its clock is the system's, so a life is measured first: as long as the server takes for a window of ids.

use super::redis_server::{RedisServer, begin_command, push_word, version};
use super::store::{Answers, Held, OpenSpec, WindowStore};
use super::stream::{CHUNK, Event, Stream};
use crate::error::Result;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Ids that are set to measure the speed, before the stream begins.
const TRIAL: u64 = 500_000;

/// A running server, which ends with this.
pub struct RedisStore {
    server: RedisServer,
    life_ms: AtomicU64,
}

/// The configuration, in words.
pub fn describe() -> String {
    format!(
        "Redis {}: SET id value NX PX life, in pipelines, over a Unix socket; no snapshots and no log, so nothing survives the server; a \
         life is as long as it takes for a window of ids",
        version()
    )
}

impl RedisStore {
    /// Starts a server, with a connection for each thread.
    pub fn start(how: &OpenSpec<'_>, threads: usize) -> Result<Self> {
        let server = RedisServer::start(how.dir, threads, None)?;
        let store = RedisStore { server, life_ms: AtomicU64::new(0) };
        store.measure_life(how.stream.window)?;
        Ok(store)
    }

    /// Sets other ids, as the stream will, and forgets them.
    fn measure_life(&self, window: u64) -> Result<()> {
        self.life_ms.store(1 << 40, Relaxed);
        let trial = Stream { window: u64::MAX >> 24, total: TRIAL, mixed: false };
        let (begin, threads) = (Instant::now(), self.server.threads() as u64);
        std::thread::scope(|scope| {
            let set = |thread: u64| -> Result<()> {
                let numbers: Vec<u64> = (thread..TRIAL).step_by(threads as usize).collect();
                for chunk in numbers.chunks(CHUNK as usize) {
                    let events: Vec<Event> = chunk.iter().map(|number| trial.event(*number)).collect();
                    self.first_seen(thread as usize, &events, &mut Answers::default())?;
                }
                Ok(())
            };
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || set(thread))).collect();
            running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })?;
        let life = begin.elapsed().as_millis() as u64 * window / TRIAL;
        self.life_ms.store(life.max(1), Relaxed);
        self.server.ask("FLUSHALL SYNC").map(drop)
    }
}

impl WindowStore for RedisStore {
    /// In one pipeline.
    fn first_seen(&self, thread: usize, events: &[Event], answers: &mut Answers) -> Result<()> {
        let life = self.life_ms.load(Relaxed).to_string();
        let mut commands = Vec::with_capacity(events.len() * 100);
        for Event { id, value, .. } in events {
            begin_command(&mut commands, 6);
            for word in [b"SET", id.as_slice(), value, b"NX", b"PX", life.as_bytes()] {
                push_word(&mut commands, word);
            }
        }
        self.server.pipeline(thread, &commands, events.len(), |line| answers.are_new.push(line == "+OK"))
    }

    fn held(&self) -> Result<Held> {
        let rows = self.server.ask("DBSIZE")?.trim_start_matches(':').parse()?;
        Ok(Held { rows: Some(rows), server_bytes: Some(self.server.used_memory()?), ..Held::default() })
    }
}
