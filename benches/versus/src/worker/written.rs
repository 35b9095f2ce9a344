//! Reads a store right after its rows were written, and then each of them once more. Nothing is flushed, and
//! no compaction is waited for: memtables and overlapping sorted runs have two versions of each row.

use super::load::LOAD_BATCH;
use super::runner::TaskRunner;
use crate::engine::Engine;
use crate::engines;
use crate::error::Result;
use crate::kernel::ResourceCounters;
use crate::keys::{KeyPresence, SplitMix64};
use crate::measure::CallDriver;
use crate::task::WorkerOutcome;
use crate::workload::{ExpectedAnswer, KeyLookup};
use std::time::Instant;

/// The generation of the first versions.
const CREATED: u64 = 0;

impl TaskRunner {
    /// Writes the rows twice, makes the calls, and then compares all rows with what was written last.
    pub fn run_written(&self) -> Result<WorkerOutcome> {
        let (dir, num) = (self.task.dir.as_path(), self.task.settings.num);
        let mut order: Vec<u64> = (0..num).collect();
        let begin = Instant::now();
        let engine = engines::open(self.task.engine, dir, &self.task.settings, false)?;
        let open = begin.elapsed();
        // Keys are hashes of their indexes, so this order is random too.
        self.write_all(engine.as_ref(), &order, CREATED)?;
        shuffle(&mut order, self.task.settings.seed);
        self.write_all(engine.as_ref(), &order, self.task.generation)?;
        let at_start = engine.facts()?;
        let before = ResourceCounters::now(dir);
        let timing = self.calls(engine.as_ref())?.timing;
        let run = ResourceCounters::now(dir).since(before);
        let mut outcome = self.outcome(&timing, run, open);
        outcome.at_start = Some(at_start);
        outcome.facts = engine.facts()?;
        self.check_everything(&self.driver(engine.as_ref()))?;
        Ok(outcome)
    }

    /// Writes the rows of these indexes, in batches.
    fn write_all(&self, engine: &dyn Engine, indexes: &[u64], generation: u64) -> Result<()> {
        let mut pairs = vec![(Vec::new(), Vec::new()); LOAD_BATCH as usize];
        for indexes in indexes.chunks(LOAD_BATCH as usize) {
            pairs.truncate(indexes.len());
            for (&index, (key, value)) in indexes.iter().zip(&mut pairs) {
                self.keys.write(self.keys.rank(index, KeyPresence::Present), KeyPresence::Present, key);
                self.values.write(index, generation, value);
            }
            engine.put_all(&pairs)?;
        }
        Ok(())
    }

    /// Compares every row with its last version, in a scan, or by a get where keys have no order.
    fn check_everything(&self, driver: &CallDriver<'_>) -> Result<()> {
        let (num, expect) = (self.task.settings.num, ExpectedAnswer::Exactly(self.task.generation));
        if self.task.engine.has_order() {
            return driver.check_all_rows(&self.keys.sorted(num), expect);
        }
        let (mut key, mut got) = (Vec::new(), (false, Vec::new()));
        for index in 0..num {
            let asked = KeyLookup { index, presence: KeyPresence::Present, expect };
            self.keys.write(self.keys.rank(index, asked.presence), asked.presence, &mut key);
            got.0 = driver.engine.get(&key, &mut got.1)?;
            driver.check_one(&asked, &got)?;
        }
        Ok(())
    }
}

/// Puts indexes in random order, the same one for every engine (Fisher and Yates).
fn shuffle(indexes: &mut [u64], seed: u64) {
    let mut rng = SplitMix64::new(seed ^ 0x7570_6461_7465);
    for at in (1..indexes.len()).rev() {
        indexes.swap(at, rng.below(at as u64 + 1) as usize);
    }
}
