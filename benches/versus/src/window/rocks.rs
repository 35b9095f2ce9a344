//! RocksDB: with leveled and with universal compaction, whose filter drops what has expired, and with FIFO
//! compaction, which drops the oldest tables above a size.
//!
//! `DBWithTTL` is leveled compaction with such a filter. Its clock is the system's, so the filter is
//! this program's, with the stream's time; and it shows what has expired until a compaction meets it, so the
//! second of expiry is compared after each get. FIFO compaction's own limit of time has the system's clock,
//! too, so the limit is the size that the tables have when they hold one window.

use super::kind::StoreKind;
use super::store::{Answers, Held, OpenSpec, WindowStore, has_expired, stamped};
use super::stream::{Event, StreamClock};
use crate::engines::rocksdb::{describe_store, set_common, table_options, table_property};
use crate::error::Result;
use crate::settings::BenchSettings;
use rocksdb::compaction_filter::Decision;
use rocksdb::{DB, DBCompactionStyle, FifoCompactOptions, FlushOptions, Options, WaitForCompactOptions};
use std::sync::Arc;

/// Bits per key of the filters.
const BITS: f64 = 10.0;
/// The room beyond a window in FIFO compaction: a twentieth, and memtables.
const ROOM: u64 = 20;
const MEMTABLES: u64 = 2;
/// More than any table: FIFO compaction before the window is full.
const NO_LIMIT: u64 = 1 << 50;

/// An open store.
pub struct RocksStore {
    db: DB,
    kind: StoreKind,
    clock: Arc<StreamClock>,
    memtable_bytes: u64,
}

/// The configuration, in words.
pub fn describe(kind: StoreKind, settings: &BenchSettings) -> String {
    let compaction = match kind {
        StoreKind::RocksFifo => "FIFO compaction, limited to the size of a window and 5 % and two memtables",
        StoreKind::RocksUniversal => "universal compaction with a filter that drops what has expired",
        _ => "leveled compaction with a filter that drops what has expired, as DBWithTTL's",
    };
    format!(
        "RocksDB {}: {compaction}; a get and a put, which are not atomic; Bloom filters of {BITS} bits per key and memtable whole-key \
         Bloom; {}",
        env!("ROCKSDB_VERSION"),
        describe_store(settings)
    )
}

impl RocksStore {
    /// Creates the store.
    pub fn open(kind: StoreKind, how: &OpenSpec<'_>) -> Result<Self> {
        let settings = how.settings;
        let mut table = table_options(&settings.rocks, settings.cache_bytes() as usize);
        table.set_bloom_filter(BITS, false);
        let mut options = Options::default();
        options.set_block_based_table_factory(&table);
        options.set_memtable_whole_key_filtering(true);
        options.set_memtable_prefix_bloom_ratio(0.1);
        set_common(&mut options, settings.memtable_bytes());
        if let Some(bytes) = settings.table_bytes() {
            options.set_target_file_size_base(bytes);
            options.set_max_bytes_for_level_base(4 * bytes);
        }
        if kind == StoreKind::RocksFifo {
            let mut fifo = FifoCompactOptions::default();
            fifo.set_max_table_files_size(NO_LIMIT);
            options.set_fifo_compaction_options(&fifo);
            options.set_compaction_style(DBCompactionStyle::Fifo);
        } else {
            let clock = Arc::clone(&how.clock);
            options.set_compaction_filter("expired", move |_, _, value| {
                if has_expired(value, &clock) { Decision::Remove } else { Decision::Keep }
            });
        }
        if kind == StoreKind::RocksUniversal {
            options.set_compaction_style(DBCompactionStyle::Universal);
        }
        let db = DB::open(&options, how.dir)?;
        Ok(RocksStore { db, kind, clock: Arc::clone(&how.clock), memtable_bytes: settings.memtable_bytes() })
    }

    fn property(&self, name: &str) -> Result<u64> {
        Ok(self.db.property_int_value(name)?.unwrap_or(0))
    }
}

impl WindowStore for RocksStore {
    fn first_seen(&self, _: usize, events: &[Event], answers: &mut Answers) -> Result<()> {
        answers.one_by_one(events, |event| {
            let found = self.db.get_pinned(event.id)?;
            if found.is_some_and(|value| !has_expired(&value, &self.clock)) {
                return Ok(false);
            }
            self.db.put(event.id, stamped(event, &self.clock))?;
            Ok(true)
        })
    }

    fn window_is_full(&self) -> Result<()> {
        if self.kind != StoreKind::RocksFifo {
            return Ok(());
        }
        let tables = self.property("rocksdb.total-sst-files-size")?;
        let limit = tables + tables / ROOM + MEMTABLES * self.memtable_bytes;
        let limit = format!("{{max_table_files_size={limit};}}");
        Ok(self.db.set_options(&[("compaction_options_fifo", limit.as_str())])?)
    }

    fn held(&self) -> Result<Held> {
        let text = self.db.property_value("rocksdb.aggregated-table-properties")?.unwrap_or_default();
        Ok(Held {
            rows: table_property(&text, "# entries"),
            filter_bytes: table_property(&text, "filter block size"),
            index_bytes: table_property(&text, "index block size (user-key? 1, delta-value? 1)"),
            tables: Some(self.db.live_files()?.len() as u64),
            server_bytes: None,
        })
    }

    fn finish(&self) -> Result<()> {
        self.db.flush_opt(&FlushOptions::default())?;
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
    }
}
