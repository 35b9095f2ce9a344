//! The interface of the compared stores.

use super::stream::{Event, Stream, StreamClock};
use crate::error::Result;
use crate::settings::BenchSettings;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// How a store is opened.
pub struct OpenSpec<'s> {
    /// Its directory.
    pub dir: &'s Path,
    /// Sizes of cache and memtables.
    pub settings: &'s BenchSettings,
    /// The stream's time.
    pub clock: Arc<StreamClock>,
    /// The ids to come.
    pub stream: Stream,
    /// RedisBloom's module.
    pub redisbloom: Option<&'s Path>,
}

/// What a store holds. `None` if it does not say.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Held {
    /// Rows, expired ones included.
    pub rows: Option<u64>,
    /// Size of all filters in bytes.
    pub filter_bytes: Option<u64>,
    /// Size of all indexes in bytes.
    pub index_bytes: Option<u64>,
    /// Tables.
    pub tables: Option<u64>,
    /// Memory of a server, in bytes.
    pub server_bytes: Option<u64>,
}

/// The answers about some events, in their order.
#[derive(Default)]
pub struct Answers {
    /// Whether each id was not remembered.
    pub are_new: Vec<bool>,
    /// Nanoseconds that each answer took, if a store gives them one by one.
    pub nanos: Vec<u64>,
}

impl Answers {
    /// Asks for one event after the other.
    pub fn one_by_one(&mut self, events: &[Event], is_new: impl Fn(&Event) -> Result<bool>) -> Result<()> {
        for event in events {
            let begin = Instant::now();
            self.are_new.push(is_new(event)?);
            self.nanos.push(begin.elapsed().as_nanos() as u64);
        }
        Ok(())
    }
}

/// An open store, used by several threads.
pub trait WindowStore: Sync {
    /// Remembers each of these ids for its life, unless it is remembered already, and adds whether it was
    /// not. The number is that of the thread.
    fn first_seen(&self, thread: usize, events: &[Event], answers: &mut Answers) -> Result<()>;

    /// The first ids expire from now on.
    fn window_is_full(&self) -> Result<()> {
        Ok(())
    }

    /// What it holds now.
    fn held(&self) -> Result<Held>;

    /// Flushes, and waits until nothing is left to compact.
    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

/// A value with the second in which it expires before it, as a store keeps it that knows no expiry: RocksDB's
/// `DBWithTTL` adds four bytes, too.
pub fn stamped(event: &Event, clock: &StreamClock) -> [u8; 12] {
    let (mut value, expiry) = ([0; 12], clock.seconds() + (event.life_ms / 1000) as u32);
    value[..4].copy_from_slice(&expiry.to_le_bytes());
    value[4..].copy_from_slice(&event.value);
    value
}

/// Whether a stamped value has expired.
pub fn has_expired(value: &[u8], clock: &StreamClock) -> bool {
    value.first_chunk().is_some_and(|expiry| u32::from_le_bytes(*expiry) <= clock.seconds())
}
