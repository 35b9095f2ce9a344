//! RedisBloom: a filter for each twelfth of a window, the oldest of which is deleted. Inexact: an id that is
//! new may be called seen.

use super::redis_server::{RedisServer, begin_command, push_word, version};
use super::store::{Answers, Held, OpenSpec, WindowStore};
use super::stream::{CHUNK, Event, LIFE_MS, StreamClock};
use crate::error::Result;
use std::sync::{Arc, Mutex};

/// Filters in the life of an id.
const PARTS: u64 = 12;
/// The false-positive rate that each filter is asked for.
const RATE: f64 = 0.001;

/// A running server, which ends with this.
pub struct RedisBloomStore {
    server: RedisServer,
    clock: Arc<StreamClock>,
    /// Ids in a filter at most.
    capacity: u64,
    /// The part of time that the newest filter is for.
    newest: Mutex<Option<u64>>,
}

/// The configuration, in words.
pub fn describe() -> String {
    format!(
        "Redis {} with RedisBloom: a filter for each {PARTS}th of a window, BF.RESERVE with an error rate of {RATE}, NONSCALING; BF.MEXISTS \
         in the older ones, then BF.MADD to the newest, of {} ids each, over a Unix socket; nothing survives the server; inexact",
        version(),
        CHUNK
    )
}

impl RedisBloomStore {
    /// Starts a server, with a connection for each thread.
    pub fn start(how: &OpenSpec<'_>, threads: usize) -> Result<Self> {
        let module = how.redisbloom.ok_or("--redisbloom: where is RedisBloom's module, redisbloom.so?")?;
        let module = std::path::absolute(module)?;
        let server = RedisServer::start(how.dir, threads, Some(&module))?;
        let capacity = how.stream.window / PARTS + CHUNK * (threads as u64 + 1);
        Ok(RedisBloomStore { server, clock: Arc::clone(&how.clock), capacity, newest: Mutex::new(None) })
    }

    /// The part of time it is now, once its filter is there and the one that is no longer asked is not.
    fn part_now(&self) -> Result<u64> {
        let part = self.clock.millis() * PARTS / LIFE_MS;
        let mut newest = self.newest.lock().map_err(|_| "a thread panicked")?;
        while newest.is_none_or(|newest| newest < part) {
            let next = newest.map_or(part, |newest| newest + 1);
            self.server.ask(&format!("BF.RESERVE {next} {RATE} {} NONSCALING", self.capacity))?;
            self.server.ask(&format!("DEL {}", next - PARTS - 1))?;
            *newest = Some(next);
        }
        Ok(newest.unwrap_or(part))
    }
}

impl WindowStore for RedisBloomStore {
    /// In two pipelines: the older filters are asked, and what none has is added to the newest.
    fn first_seen(&self, thread: usize, events: &[Event], answers: &mut Answers) -> Result<()> {
        let part = self.part_now()?;
        let mut commands = Vec::with_capacity(events.len() * 40 * PARTS as usize);
        for older in part - PARTS..part {
            push_with_ids(&mut commands, b"BF.MEXISTS", older, events.iter());
        }
        let mut is_new = vec![true; events.len()];
        let (mut at, of_answer) = (0, events.len() + 1);
        self.server.pipeline(thread, &commands, of_answer * PARTS as usize, |line| {
            if line == ":1" {
                is_new[at % of_answer - 1] = false;
            }
            at += 1;
        })?;
        let new: Vec<&Event> =
            events.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(e, _)| e).collect();
        let mut added = Vec::with_capacity(new.len());
        if !new.is_empty() {
            commands.clear();
            push_with_ids(&mut commands, b"BF.MADD", part, new.iter().copied());
            self.server.pipeline(thread, &commands, new.len() + 1, |line| added.push(line == ":1"))?;
        }
        let mut added = added.into_iter().skip(1);
        answers.are_new.extend(is_new.into_iter().map(|is_new| is_new && added.next() == Some(true)));
        Ok(())
    }

    fn held(&self) -> Result<Held> {
        Ok(Held { server_bytes: Some(self.server.used_memory()?), ..Held::default() })
    }
}

/// Adds a command about a filter and the ids of events.
fn push_with_ids<'e>(
    commands: &mut Vec<u8>,
    command: &[u8],
    part: u64,
    events: impl ExactSizeIterator<Item = &'e Event>,
) {
    begin_command(commands, events.len() + 2);
    push_word(commands, command);
    push_word(commands, part.to_string().as_bytes());
    events.for_each(|event| push_word(commands, &event.id));
}
