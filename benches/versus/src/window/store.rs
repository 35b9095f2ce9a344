//! The interface of the compared stores.

use super::stream::{Event, StreamClock};
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
    /// Ids in a window.
    pub window: u64,
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

/// An open store, used by several threads.
pub trait WindowStore: Sync {
    /// Remembers an id for a life, unless it is remembered already. Returns whether it was not.
    fn first_seen(&self, event: &Event) -> Result<bool>;

    /// The same for each of these events in turn, in the thread with this number. Adds the answers, and the
    /// nanoseconds that each took, if they can be told apart.
    fn first_seen_all(
        &self,
        _thread: usize,
        events: &[Event],
        answers: &mut Vec<bool>,
        nanos: &mut Vec<u64>,
    ) -> Result<()> {
        for event in events {
            let begin = Instant::now();
            answers.push(self.first_seen(event)?);
            nanos.push(begin.elapsed().as_nanos() as u64);
        }
        Ok(())
    }

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
pub fn stamped(event: &Event, expiry: u32) -> [u8; 12] {
    let mut value = [0; 12];
    value[..4].copy_from_slice(&expiry.to_le_bytes());
    value[4..].copy_from_slice(&event.value);
    value
}

/// Whether a stamped value has expired.
pub fn has_expired(value: &[u8], clock: &StreamClock) -> bool {
    value.first_chunk().is_some_and(|expiry| u32::from_le_bytes(*expiry) <= clock.seconds())
}
