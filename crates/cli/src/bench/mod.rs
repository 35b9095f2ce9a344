//! `sidebloom bench`: the workloads of db_bench and YCSB.

mod args;
mod drive;
mod keys;
mod keyspaces;
mod reads;
mod report;
mod store;
mod workload;
mod writes;
mod ycsb;
mod zipf;

use crate::context::{Context, Failure, Outcome};
use crate::progress;
use crate::system::{self, DiskMeter};
pub use args::Args;
use drive::Driver;
pub use keys::mix;
use keys::{KeyKind, KeySpace, Values};
use keyspaces::Keyspaces;
use report::{Observed, Report, StoreCounters};
use std::time::Instant;
use store::Store;
use workload::{Amount, Workload};

impl Args {
    pub fn run(mut self, cx: &Context) -> Result<Outcome, Failure> {
        let filled = self.use_existing || self.workloads.first().is_some_and(|first| first.is_fill());
        if !filled {
            self.workloads.insert(0, Workload::FillRandom);
        }
        if self.keyspaces.is_some_and(|count| count > self.num) {
            return Err(Failure::message("--keyspaces must be at most --num: each keyspace needs a key"));
        }
        let keys = KeySpace::new(self.num, self.key_bytes as usize, self.seed);
        let values = Values::new(self.value_bytes as usize, self.seed);
        let mut store = Store::new(cx, &self)?;
        if self.use_existing {
            self.check_existing(&mut store, &keys)?;
        }
        report::print_head(cx)?;
        for (i, &workload) in self.workloads.iter().enumerate() {
            if workload.is_fill() && i > 0 && !self.use_existing {
                store.clear()?;
            }
            let report = self.measure(workload, &mut store, &keys, &values)?;
            report.print(cx)?;
            cx.flush()?;
        }
        Ok(Outcome::Found)
    }

    fn measure(
        &self,
        workload: Workload,
        store: &mut Store<'_>,
        keys: &KeySpace,
        values: &Values,
    ) -> Result<Report, Failure> {
        let amount = Amount { reads: self.reads.unwrap_or(self.num), batch: self.batch };
        let page_cache = if self.cold && !workload.writes() { Some(store.make_cold()?) } else { None };
        let db = store.db()?;
        let spaces = &Keyspaces::open(&db, self.keyspaces, !self.use_existing)?;
        let meter = DiskMeter::new(store.path());
        let bar = progress::bar(&workload.name(), workload.calls(self.num, amount));
        let driver =
            Driver { spaces, keys, values, threads: self.threads, seed: self.seed, bar: bar.clone() };
        system::reset_peak_memory();
        let before = (StoreCounters::new(&db), meter.read());
        let result = workload.run(&driver, amount)?;
        let disk = meter.read().since(before.1);
        bar.set_message("compacting");
        let compacting = Instant::now();
        if workload.writes() {
            db.flush()?;
            db.wait_for_compaction()?;
            db.warm()?;
        }
        let settle = workload.writes().then(|| compacting.elapsed());
        bar.finish_and_clear();
        let observed = Observed {
            result,
            counters: StoreCounters::new(&db).since(&before.0),
            disk,
            settle,
            page_cache,
            expected_false_positives: db.stats().expected_false_positives(),
        };
        Ok(Report::new(workload, self.threads, observed))
    }

    /// Checks by the first and the last key that the store was loaded with the same options.
    fn check_existing(&self, store: &mut Store<'_>, keys: &KeySpace) -> Result<(), Failure> {
        let db = store.db()?;
        let spaces = Keyspaces::open(&db, self.keyspaces, false)?;
        let mut key = Vec::new();
        for index in [0, keys.num() - 1] {
            keys.write(index, KeyKind::Present, &mut key);
            if !spaces.of(index).contains_key(&key)? {
                let path = store.path().display();
                return Err(Failure::message(format!(
                    "{path} does not hold this benchmark's keys: load it with `bench fillrandom` and the same --num, --key-bytes, --seed and --keyspaces"
                )));
            }
        }
        Ok(())
    }
}
