//! fjall, with a compaction filter that drops what has expired.

use super::store::{Answers, Held, OpenSpec, WindowStore, has_expired, stamped};
use super::stream::{Event, StreamClock};
use crate::engines::fjall::{describe as describe_engine, finish_compactions, keyspace_options};
use crate::error::Result;
use crate::settings::BenchSettings;
use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};
use fjall::{AbstractTree, Database, Keyspace};
use std::sync::Arc;

/// An open store.
pub struct FjallStore {
    db: Database,
    seen: Keyspace,
    clock: Arc<StreamClock>,
}

/// The configuration, in words.
pub fn describe(settings: &BenchSettings) -> String {
    format!(
        "{}; a compaction filter that drops what has expired; a get and an insert, which are not atomic",
        describe_engine(settings)
    )
}

struct DropExpired(Arc<StreamClock>);

impl Factory for DropExpired {
    fn name(&self) -> &str {
        "expired"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(DropExpired(Arc::clone(&self.0)))
    }
}

impl CompactionFilter for DropExpired {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        Ok(if has_expired(&item.value()?, &self.0) { Verdict::Remove } else { Verdict::Keep })
    }
}

impl FjallStore {
    /// Creates the store.
    pub fn open(how: &OpenSpec<'_>) -> Result<Self> {
        let factory: Arc<dyn Factory> = Arc::new(DropExpired(Arc::clone(&how.clock)));
        let db = Database::builder(how.dir)
            .cache_size(how.settings.cache_bytes())
            .worker_threads(2)
            .with_compaction_filter_factories(Arc::new(move |_| Some(Arc::clone(&factory))))
            .open()?;
        let seen = db.keyspace("seen", || keyspace_options(how.settings))?;
        Ok(FjallStore { db, seen, clock: Arc::clone(&how.clock) })
    }
}

impl WindowStore for FjallStore {
    fn first_seen(&self, _: usize, events: &[Event], answers: &mut Answers) -> Result<()> {
        answers.one_by_one(events, |event| {
            let found = self.seen.get(event.id)?;
            if found.is_some_and(|value| !has_expired(&value, &self.clock)) {
                return Ok(false);
            }
            self.seen.insert(event.id, stamped(event, &self.clock))?;
            Ok(true)
        })
    }

    fn held(&self) -> Result<Held> {
        let tree = &self.seen.tree;
        Ok(Held {
            rows: Some(self.seen.approximate_len() as u64),
            filter_bytes: Some(tree.filter_size()),
            index_bytes: Some(tree.pinned_block_index_size() as u64),
            tables: Some(tree.table_count() as u64),
            server_bytes: None,
        })
    }

    fn finish(&self) -> Result<()> {
        finish_compactions(&self.db, &self.seen)
    }
}
