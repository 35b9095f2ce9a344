//! What building filters costs: the CPU time of rewriting the same tables under each policy.

use super::contest::Contest;
use super::workloads::ENGINE;
use crate::engines::rocksdb::RocksEngine;
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::rocks_filter::RocksFilter;
use crate::terminal::progress;

impl Contest {
    /// Rewrites the first policy's store under each policy in turn, once per round. Reading, merging and
    /// compressing cost the same for all: compactions do not probe filters.
    pub fn time_compactions(&mut self) -> Result<()> {
        let filters = self.filters();
        let Some(first) = filters.first() else { return Ok(()) };
        // The first pass merges all sorted runs into one. Later passes, which count, rewrite that one.
        progress("compacting");
        self.compact(first, first)?;
        for round in 0..self.record.rounds {
            for (at, filter) in filters.iter().enumerate() {
                progress(&format!("round {}/{}: compaction with {filter}", round + 1, self.record.rounds));
                let seconds = self.compact(first, filter)?;
                self.record.policies[at].compaction_cpu_seconds.push(seconds);
            }
        }
        Ok(())
    }

    /// CPU seconds of a compaction of all tables.
    fn compact(&self, store: &RocksFilter, filter: &RocksFilter) -> Result<f64> {
        let dir = self.dir(store);
        let engine = RocksEngine::open(ENGINE, &dir, &self.settings(filter), false)?;
        let files = kernel::files(&dir);
        kernel::fill_page_cache(&files)?;
        let before = ResourceCounters::now(&dir);
        engine.compact_all()?;
        let used = ResourceCounters::now(&dir).since(before);
        let filtered = engine.tables()?.filter_bytes > 0;
        if filtered != (*filter != RocksFilter::Off) {
            return Err(format!("a compaction with {filter} wrote tables of another policy").into());
        }
        drop(engine);
        kernel::write_back(&kernel::files(&dir))?;
        Ok(used.cpu_ns as f64 / 1e9)
    }
}
