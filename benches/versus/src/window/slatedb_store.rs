//! SlateDB in a local directory, whose rows have a time to live.
//!
//! It shows what has expired until a compaction meets it, so the time of expiry is compared after each get.

use super::store::{Answers, Held, OpenSpec, WindowStore};
use super::stream::{Event, StreamClock};
use crate::error::Result;
use crate::settings::BenchSettings;
use chrono::{DateTime, Utc};
use slatedb::config::{PutOptions, Settings, Ttl, WriteOptions};
use slatedb::db_cache::SplitCache;
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::object_store::local::LocalFileSystem;
use slatedb::{Db, Error};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// An open store.
pub struct SlateStore {
    runtime: Runtime,
    db: Db,
    clock: Arc<StreamClock>,
}

/// The configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "SlateDB 0.18 in a local directory: a time to live; a get and a put, which are not atomic; the log written every 100 ms; Bloom \
         filters of 10 bits per key; block cache {} MiB, indexes and filters in another of that size, memtable {} MiB, otherwise \
         default settings, no compression",
        settings.cache_mib, settings.memtable_mib
    )
}

/// Says the stream's time, and waits by the system's.
#[derive(Debug)]
struct Clock {
    stream: Arc<StreamClock>,
    system: DefaultSystemClock,
}

impl SystemClock for Clock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.stream.millis() as i64).unwrap_or_default()
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.system.sleep(duration)
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        self.system.ticker(duration)
    }
}

impl SlateStore {
    /// Creates the store.
    pub fn open(how: &OpenSpec<'_>) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let files = Arc::new(LocalFileSystem::new_with_prefix(how.dir)?);
        let (stream, system) = (Arc::clone(&how.clock), DefaultSystemClock::new());
        let cache = || {
            let options = MokaCacheOptions { max_capacity: how.settings.cache_bytes(), ..Default::default() };
            Some(Arc::new(MokaCache::new_with_opts(options)) as _)
        };
        let memtable_bytes = how.settings.memtable_bytes() as usize;
        let settings = Settings { l0_sst_size_bytes: memtable_bytes, ..Settings::default() };
        let opening = Db::builder("seen", files)
            .with_settings(settings)
            .with_system_clock(Arc::new(Clock { stream, system }))
            .with_db_cache(Arc::new(SplitCache::new().with_block_cache(cache()).with_meta_cache(cache())), 0)
            .build();
        let db = runtime.block_on(opening)?;
        Ok(SlateStore { runtime, db, clock: Arc::clone(&how.clock) })
    }
}

impl SlateStore {
    fn is_new(&self, event: &Event) -> Result<bool> {
        let now = self.clock.millis() as i64;
        let put = PutOptions { ttl: Ttl::ExpireAtMillis(now + event.life_ms as i64) };
        let is_new = self.runtime.block_on(async {
            let found = self.db.get_key_value(event.id).await?;
            let is_new = found.is_none_or(|found| found.expire_ts.is_some_and(|expiry| expiry <= now));
            if is_new {
                self.db.put_with_options(event.id, event.value, &put, &WriteOptions::default()).await?;
            }
            Ok::<_, Error>(is_new)
        })?;
        Ok(is_new)
    }
}

impl WindowStore for SlateStore {
    fn first_seen(&self, _: usize, events: &[Event], answers: &mut Answers) -> Result<()> {
        answers.one_by_one(events, |event| self.is_new(event))
    }

    fn held(&self) -> Result<Held> {
        let tables = self.db.manifest().all_sst_views().count();
        Ok(Held { tables: Some(tables as u64), ..Held::default() })
    }

    fn finish(&self) -> Result<()> {
        Ok(self.runtime.block_on(self.db.close())?)
    }
}
