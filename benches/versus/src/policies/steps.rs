//! The measurements of each policy: loads, the filters' answers, and lookups.

use super::answers;
use super::contest::Contest;
use super::make;
use super::record::MeasuredRound;
use super::workloads::{ENGINE, LOAD, WORKLOADS};
use crate::engines::rocksdb::RocksEngine;
use crate::error::Result;
use crate::format::count;
use crate::terminal::progress;
use std::fs;

impl Contest {
    /// Loads a store with each policy in turn, and discards it.
    pub fn time_loads(&mut self, loads: u64) -> Result<()> {
        for load in 0..loads {
            for (at, filter) in self.filters().into_iter().enumerate() {
                progress(&format!("load {}/{loads} with {filter}", load + 1));
                let outcome = self.work(&filter, LOAD, self.settings(&filter))?;
                self.record.policies[at].loads.push(outcome);
                fs::remove_dir_all(self.dir(&filter))?;
            }
        }
        Ok(())
    }

    /// Makes the stores for reading.
    pub fn make_stores(&self) -> Result<()> {
        for filter in self.filters() {
            progress(&format!("store with {filter}"));
            make::make(&self.dir(&filter), &self.settled(&filter))?;
        }
        Ok(())
    }

    /// Reads every key, and counts the filters' answers for missing keys.
    pub fn count_answers(&mut self, probes: u64) -> Result<()> {
        for (at, filter) in self.filters().into_iter().enumerate() {
            progress(&format!(
                "{} keys and {} missing keys with {filter}",
                count(self.record.settings.num as f64),
                count(probes as f64)
            ));
            let dir = self.dir(&filter);
            let engine = RocksEngine::open(ENGINE, &dir, &self.settled(&filter), true)?;
            let of = &mut self.record.policies[at];
            of.tables = engine.tables()?;
            of.answers = answers::for_missing(&engine, &self.record.settings, probes)?;
            of.found_keys = answers::found(&engine, &self.record.settings)?;
            let (found, wanted) = (of.found_keys, self.record.policies[0].found_keys);
            if found != wanted || found != self.record.settings.num {
                return Err(format!(
                    "WRONG ANSWER: {filter} found {found} of {} keys, {} found {wanted}: a filter hides keys",
                    self.record.settings.num, self.record.policies[0].filter
                )
                .into());
            }
        }
        Ok(())
    }

    /// Runs each workload with each policy in turn, once per round.
    pub fn time_lookups(&mut self) -> Result<()> {
        for round in 0..self.record.rounds {
            for workload in WORKLOADS {
                self.generation += 1;
                for (at, filter) in self.filters().into_iter().enumerate() {
                    progress(&format!(
                        "round {}/{}: {workload} with {filter}",
                        round + 1,
                        self.record.rounds
                    ));
                    let outcome = self.work(&filter, workload, self.settled(&filter))?;
                    if let Some(why) = &outcome.rejected {
                        let note = format!("rejected: {workload} with {filter}, round {}: {why}", round + 1);
                        self.record.notes.push(note);
                    }
                    let measured = MeasuredRound { workload: workload.to_owned(), round, outcome };
                    self.record.policies[at].lookups.push(measured);
                }
            }
        }
        Ok(())
    }
}
