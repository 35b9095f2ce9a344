//! What `versus settings` measured, and the choice that the other commands use.

use crate::error::Result;
use crate::machine::Machine;
use crate::rocks_settings::RocksSettings;
use crate::settings::BenchSettings;
use serde::{Deserialize, Serialize};

/// The record of the last `versus settings`, with the choice that every other command uses.
const RECORD: &str = include_str!("../records/rocksdb.json");

/// The figures of a choice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RocksFigures {
    /// The choice.
    pub settings: RocksSettings,
    /// Mean nanoseconds of a lookup of a missing key, in memory: the median of the rounds.
    pub missing_ns: f64,
    /// Mean nanoseconds of a lookup of a present key, in memory: the median of the rounds.
    pub found_ns: f64,
    /// The sorted runs of each level of the store.
    pub runs_by_level: String,
}

/// The record of a sweep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RocksRecord {
    /// When it began.
    pub date: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// Sizes, counts and the seed.
    pub settings: BenchSettings,
    /// Rounds of each choice.
    pub rounds: u64,
    /// Every choice.
    pub figures: Vec<RocksFigures>,
    /// The choice with the lowest geometric mean of both times, so that neither outweighs the other.
    pub choice: RocksSettings,
}

impl RocksFigures {
    /// The cost, which the best choice has least of.
    pub fn cost(&self) -> f64 {
        (self.missing_ns * self.found_ns).sqrt()
    }
}

impl RocksRecord {
    /// The record that this program was built with.
    pub fn recorded() -> Result<Self> {
        serde_json::from_str(RECORD).map_err(|error| format!("records/rocksdb.json: {error}").into())
    }

    /// Chooses the fastest with partitions instead.
    pub fn choose_partitioned(&mut self) {
        let partitioned = self.figures.iter().filter(|figures| figures.settings.partitioned);
        let best = partitioned.min_by(|a, b| a.cost().total_cmp(&b.cost()));
        self.choice = best.map_or(self.choice, |best| best.settings);
    }

    /// Where the choice comes from.
    pub fn describe(&self) -> String {
        let among = if self.choice.partitioned { ", among those with partitions" } else { "" };
        format!(
            "RocksDB's cache, indexes and filters as `versus settings` measured them to be fastest{among}, {} with {} keys: {}",
            self.date,
            crate::format::count(self.settings.num as f64),
            self.choice.describe()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_has_every_choice_and_chose_the_fastest() {
        let record = RocksRecord::recorded().unwrap();
        let measured: Vec<RocksSettings> = record.figures.iter().map(|figures| figures.settings).collect();
        assert_eq!(measured, RocksSettings::all());
        let best = record.figures.iter().min_by(|a, b| a.cost().total_cmp(&b.cost())).unwrap();
        assert_eq!(best.settings, record.choice);
    }

    #[test]
    fn the_fastest_with_partitions_can_be_chosen() {
        let mut record = RocksRecord::recorded().unwrap();
        record.choose_partitioned();
        let partitioned = |figures: &&RocksFigures| figures.settings.partitioned;
        let chosen = record.figures.iter().find(|figures| figures.settings == record.choice).unwrap();
        assert!(record.figures.iter().filter(partitioned).all(|other| chosen.cost() <= other.cost()));
        assert!(record.choice.partitioned && record.describe().contains("among those with partitions"));
    }
}
