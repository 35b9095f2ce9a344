//! The state of the store that a workload needs: in memory or out of it, and at rest.

use super::runner::TaskRunner;
use crate::engine::{Engine, EngineFacts};
use crate::error::Result;
use crate::kernel::{self, ResourceCounters};
use crate::keys::{KeyPresence, SplitMix64};
use crate::workload::CacheState;
use std::path::PathBuf;

/// One get for this many bytes of a cache that cannot hold the store: two for each block of 4 KiB, as some
/// find their block there already.
const WARM_BYTES_PER_GET: u64 = 2048;

impl TaskRunner {
    /// Reads filters and indexes into memory. For a warm workload, also fills the engine's cache, and the
    /// page cache with the rest.
    pub fn warm_up(&self, engine: &dyn Engine) -> Result<()> {
        engine.warm()?;
        if self.workload.cache != CacheState::Warm {
            return Ok(());
        }
        let settings = &self.task.settings;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut get = |rank| {
            self.keys.write(rank, KeyPresence::Present, &mut key);
            engine.get(&key, &mut value)
        };
        if settings.fits_cache() {
            // Two keys for every block of 4 KiB, so that each block is read.
            let step = 2048 / (settings.key_bytes + settings.value_bytes);
            for rank in self.keys.sorted(settings.num).into_iter().step_by(step.clamp(1, 8) as usize) {
                get(rank)?;
            }
        } else {
            kernel::fill_page_cache(&kernel::files(&self.task.dir))?;
            let mut rng = SplitMix64::new(settings.seed ^ 0x7761_726d);
            for _ in 0..settings.cache_bytes() / WARM_BYTES_PER_GET {
                get(self.keys.rank(rng.below(settings.num), KeyPresence::Present))?;
            }
        }
        Ok(())
    }

    /// Drops the store from the page cache for a cold workload. If the store is then not in the required
    /// state, returns why.
    pub fn why_not_ready(&self, engine: &dyn Engine) -> Result<Option<String>> {
        if engine.busy() {
            return Ok(Some("a compaction was running".to_owned()));
        }
        if self.workload.cache == CacheState::Warm {
            return Ok(None);
        }
        let mut files = kernel::files(&self.task.dir);
        files.retain(|file| !self.task.engine.stays_in_memory(file));
        kernel::drop_page_cache(&files)?;
        self.why_still_cached(&files)
    }

    /// Why a cold workload is rejected: its files stayed in the page cache.
    pub fn why_still_cached(&self, files: &[PathBuf]) -> Result<Option<String>> {
        if kernel::is_memory(&self.task.dir) {
            return Ok(Some("the store is in a memory-backed file system".to_owned()));
        }
        let share = kernel::cached_share(files)?;
        Ok((share > 0.02).then(|| format!("{:.0} % of the store stayed in the page cache", 100.0 * share)))
    }

    pub fn why_rejected_after(
        &self,
        engine: &dyn Engine,
        run: ResourceCounters,
        calls: u64,
    ) -> Option<String> {
        if engine.busy() || run.write_bytes > 1 << 20 {
            return Some("a compaction was running".to_owned());
        }
        let from_disk = run.read_bytes > 4096 * (calls / 1000 + 16);
        (self.workload.cache == CacheState::Warm && from_disk)
            .then(|| format!("a warm workload read {} bytes from disk", run.read_bytes))
    }

    /// Why the number of sorted runs is wrong, if the settings give a number.
    pub fn why_wrong_runs(&self, facts: &EngineFacts) -> Option<String> {
        let (wanted, found) = (self.task.settings.runs, facts.runs()?);
        (wanted > 0 && found != wanted).then(|| format!("{found} sorted runs instead of {wanted}"))
    }
}
