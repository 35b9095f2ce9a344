//! An execution of `versus policies`: a store for each policy, and the workers that query it.

use super::record::{PoliciesRecord, PolicyResult};
use super::workloads::{ENGINE, LOAD, LOADED};
use crate::engines::rocksdb::describe_store;
use crate::error::Result;
use crate::format;
use crate::machine::Machine;
use crate::output::StoreDirs;
use crate::rocks_filter::RocksFilter;
use crate::session;
use crate::settings::BenchSettings;
use crate::shape;
use crate::task::{WorkerOutcome, WorkerTask};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// An execution in progress. Its stores are removed at its end, also after an error.
pub struct Contest {
    /// What has been measured so far.
    pub record: PoliciesRecord,
    dirs: StoreDirs,
    /// Seeds the keys of a workload.
    pub generation: u64,
    pub begin: Instant,
}

impl Contest {
    /// An execution that has measured nothing yet.
    pub fn new(
        stores: &Path,
        policies: Vec<RocksFilter>,
        settings: BenchSettings,
        rounds: u64,
    ) -> Result<Self> {
        let dirs = StoreDirs::none_there(stores, policies.iter().map(directory))?;
        let policies = policies.into_iter().map(PolicyResult::new).collect();
        let record = PoliciesRecord {
            date: format::now(),
            seconds: 0.0,
            machine: Machine::here(stores),
            rocksdb: format!("RocksDB {}: {}", env!("ROCKSDB_VERSION"), describe_store(&settings)),
            settings,
            rounds,
            policies,
            notes: Vec::new(),
        };
        Ok(Contest { record, dirs, generation: LOADED, begin: Instant::now() })
    }

    /// The settings of a load with this policy.
    pub fn settings(&self, filter: &RocksFilter) -> BenchSettings {
        BenchSettings { rocks_filter: Some(filter.clone()), ..self.record.settings.clone() }
    }

    /// The settings of a store of [`shape::RUNS`] sorted runs, which RocksDB must leave as they are.
    pub fn settled(&self, filter: &RocksFilter) -> BenchSettings {
        BenchSettings { runs: shape::RUNS, ..self.settings(filter) }
    }

    /// The policies, the baseline first.
    pub fn filters(&self) -> Vec<RocksFilter> {
        self.record.policies.iter().map(|policy| policy.filter.clone()).collect()
    }

    /// The directory of a policy's store.
    pub fn dir(&self, filter: &RocksFilter) -> PathBuf {
        self.dirs.dir(&directory(filter))
    }

    /// Runs a workload in a new process. A rejected one gets a second chance.
    pub fn work(
        &self,
        filter: &RocksFilter,
        workload: &str,
        settings: BenchSettings,
    ) -> Result<WorkerOutcome> {
        let task = WorkerTask {
            engine: ENGINE,
            workload: workload.to_owned(),
            dir: self.dir(filter),
            settings,
            added: 0,
            generation: self.generation,
            group: None,
        };
        let spawn =
            || session::spawn(&task).map_err(|error| format!("{workload} with {filter}: {error}").into());
        if workload == LOAD { spawn() } else { session::second_chance(spawn) }
    }
}

/// The name of the directory of a policy's store.
fn directory(filter: &RocksFilter) -> String {
    filter.to_string().replace(':', "-")
}
