//! Changes the options of an open store.
//!
//! 1. Everything that can fail comes first: the checks, then the start of threads. So either all changes take
//!    effect, or none.
//! 2. Whoever changes options holds the store's threads, so changes happen one after another.
//! 3. Nothing is stored: the next opening has options of its own.

use super::close::OpenStore;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::options::OptionChanges;
use crate::sync::{Instant, lock};

impl OpenStore {
    /// Puts all changes into force, or returns an error.
    pub fn set_options(&self, changes: &OptionChanges) -> Result<()> {
        let Engine { shared, filters, .. } = &*self.engine;
        let storage = &shared.storage;
        storage.process.check()?;
        changes.validate()?;
        if changes.concern_writes() {
            shared.check_writable()?;
        }
        if changes.filter_policy.is_some_and(|policy| policy.is_on() != storage.filters_on()) {
            let what = "filters can be turned on or off only when the store is opened";
            return Err(Error::InvalidArgument(what.to_owned()));
        }
        let mut threads = lock(&self.threads);
        if let Some(wanted) = changes.background_threads {
            let before = storage.in_force.set_background_threads(wanted);
            threads.start_workers(&self.engine).inspect_err(|_| {
                storage.in_force.set_background_threads(before);
                shared.wake_workers_surely(); // Those that were started end again.
            })?;
        }
        if let Some(bytes) = changes.block_cache_bytes {
            storage.files.set_cache_bytes(bytes);
        }
        if let Some(durability) = changes.durability {
            storage.in_force.set_durability(durability);
        }
        if let Some(policy) = changes.filter_policy {
            filters.set_policy(policy);
        }
        if let Some(bytes) = changes.compaction_bytes_per_second {
            shared.control.lock().compactions.rate.set_rate(bytes, Instant::now());
            storage.in_force.set_compaction_rate(bytes);
        }
        shared.wake_workers_surely();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::control::Workers;
    use crate::engine::open::open;
    use crate::support::{eventually, fast_dir};
    use crate::{OptionChanges, Options};
    use std::collections::BTreeSet;
    use std::sync::Arc;

    #[test]
    fn threads_rise_at_once_and_fall_after_their_tasks() {
        let dir = fast_dir();
        let mut store = open(dir.path(), Options::new()).unwrap();
        // Each thread holds the engine.
        let threads = || Arc::strong_count(&store.engine) - 1;
        for wanted in [2, 9, 3, 64, 2, 5, 5] {
            let before = threads();
            store.set_options(&OptionChanges::new().background_threads(wanted)).unwrap();
            if wanted > before {
                assert_eq!(threads(), wanted);
            }
            eventually("superfluous threads end", || threads() == wanted);
            let control = store.engine.shared.control.lock();
            let numbers: BTreeSet<usize> = control.workers.running.iter().copied().collect();
            assert_eq!(numbers.len(), wanted, "{numbers:?}");
            assert!(numbers.last() < Some(&64), "numbers, and so names, are used again: {numbers:?}");
        }
        store.close().unwrap();
        assert_eq!(Arc::strong_count(&store.engine), 1);
    }

    #[test]
    fn as_long_as_compactions_run_one_thread_stays_free_for_flushes() {
        let mut workers = Workers { running: (0..4).collect(), ended: Vec::new() };
        assert!(!workers.may_end(4, 0));
        assert!(!workers.may_end(2, 3), "the only one that could flush");
        assert!(workers.may_end(2, 2));
        workers.end(1);
        assert!(!workers.may_end(2, 2) && workers.may_end(2, 1));
        workers.end(3);
        assert!(!workers.may_end(2, 0));
        assert_eq!((workers.begin(), workers.begin(), workers.begin()), (1, 3, 4));
        assert_eq!(workers.ended, [1, 3]);
    }
}
