//! sidebloom, with a window, with rows that expire, and without expiry.

use super::kind::StoreKind;
use super::store::{Answers, Held, OpenSpec, WindowStore};
use super::stream::{Event, LIFE_MS, StreamClock};
use crate::error::Result;
use crate::settings::BenchSettings;
use sidebloom::{Db, Expiry, Keyspace, KeyspaceOptions, Options, WallClock};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An open store.
pub struct SidebloomStore {
    db: Db,
    seen: Keyspace,
    /// Whether each row has a life of its own.
    mixed: bool,
}

impl WallClock for StreamClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis())
    }
}

const LIFE: Duration = Duration::from_millis(LIFE_MS);

fn keyspace_options(kind: StoreKind) -> KeyspaceOptions {
    match kind {
        StoreKind::Ours => KeyspaceOptions::new().window(LIFE),
        StoreKind::OursExpiring => KeyspaceOptions::new().expire_after(LIFE),
        _ => KeyspaceOptions::new(),
    }
}

/// The configuration, in words.
pub fn describe(kind: StoreKind, settings: &BenchSettings) -> String {
    let keyspace = match kind {
        StoreKind::Ours => "a keyspace with a window",
        StoreKind::OursExpiring => "a keyspace whose rows expire, without a window",
        _ => "a keyspace whose rows do not expire, so ids are never forgotten",
    };
    format!("{keyspace}; insert_new; {}, otherwise default options", settings.describe_tables())
}

impl SidebloomStore {
    /// Creates the store.
    pub fn open(kind: StoreKind, how: &OpenSpec<'_>) -> Result<Self> {
        let options = Options::new()
            .clock(Arc::clone(&how.clock) as _)
            .block_cache_bytes(how.settings.cache_bytes())
            .memtable_bytes(how.settings.memtable_bytes());
        let options = match how.settings.table_bytes() {
            Some(bytes) => options.segment_bytes(bytes),
            None => options,
        };
        let db = options.open(how.dir)?;
        let seen = db.create_keyspace("seen", keyspace_options(kind))?;
        Ok(SidebloomStore { db, seen, mixed: how.stream.mixed && kind.forgets() })
    }
}

impl WindowStore for SidebloomStore {
    fn first_seen(&self, _: usize, events: &[Event], answers: &mut Answers) -> Result<()> {
        answers.one_by_one(events, |event| {
            if self.mixed {
                let life = Expiry::after(Duration::from_millis(event.life_ms));
                return Ok(self.seen.insert_new_with(event.id, event.value, life)?);
            }
            Ok(self.seen.insert_new(event.id, event.value)?)
        })
    }

    fn held(&self) -> Result<Held> {
        let stats = self.db.stats();
        let levels = &stats.levels;
        let sum = |figure: fn(&sidebloom::LevelStats) -> u64| levels.iter().map(figure).sum::<u64>();
        Ok(Held {
            rows: Some(sum(|level| level.keys)),
            filter_bytes: Some(sum(|level| level.filter_bytes)),
            index_bytes: Some(stats.index_bytes),
            tables: Some(sum(|level| level.segments as u64)),
            server_bytes: None,
        })
    }

    fn finish(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compaction()?)
    }
}
