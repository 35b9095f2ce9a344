//! The answers of a store's filters: "maybe" for every key that is present, and seldom for others.

use crate::engine::Engine;
use crate::engines::rocksdb::RocksEngine;
use crate::error::Result;
use crate::keys::{KeyGenerator, KeyPresence, SplitMix64};
use crate::settings::BenchSettings;
use crate::workload::MULTI;
use serde::{Deserialize, Serialize};

/// The answers of all filters to lookups of missing keys.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct FilterAnswers {
    /// Lookups. Each probes the filter of every table whose range has the key.
    pub lookups: u64,
    /// "Maybe", though no key was there (RocksDB's `bloom.filter.full.positive`).
    pub false_positives: u64,
    /// "Absent" (RocksDB's `bloom.filter.useful`).
    pub negatives: u64,
}

impl FilterAnswers {
    /// False-positive rate of a probe of one filter; `None` without filters.
    pub fn rate(&self) -> Option<f64> {
        let probes = self.false_positives + self.negatives;
        (probes > 0).then(|| self.false_positives as f64 / probes as f64)
    }

    /// Relative standard error of the rate: false positives are independent.
    pub fn relative_error(&self) -> Option<f64> {
        (self.false_positives > 0).then(|| 1.0 / (self.false_positives as f64).sqrt())
    }

    /// Filters probed per lookup.
    pub fn probes_per_lookup(&self) -> f64 {
        (self.false_positives + self.negatives) as f64 / self.lookups.max(1) as f64
    }
}

/// Looks up missing keys, and counts the filters' answers for these alone.
pub fn for_missing(engine: &RocksEngine, settings: &BenchSettings, lookups: u64) -> Result<FilterAnswers> {
    let keys = KeyGenerator::new(settings.key_bytes as usize, settings.seed);
    let mut rng = SplitMix64::new(settings.seed ^ 0x616e_7377_6572);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let before = engine.facts()?;
    for _ in 0..lookups {
        let missing = keys.rank(rng.next() >> 2, KeyPresence::Missing);
        keys.write(missing, KeyPresence::Missing, &mut key);
        if engine.get(&key, &mut value)? {
            return Err(format!("WRONG ANSWER: found {}, which was never written", key.escape_ascii()).into());
        }
    }
    let after = engine.facts()?;
    let counted = |before: Option<u64>, after: Option<u64>| {
        after.zip(before).map(|(after, before)| after - before).ok_or("RocksDB without statistics")
    };
    Ok(FilterAnswers {
        lookups,
        false_positives: counted(before.false_positives, after.false_positives)?,
        negatives: counted(before.negatives, after.negatives)?,
    })
}

/// Looks up every written key in order, half of them in batches. Returns how many are found.
pub fn found(engine: &RocksEngine, settings: &BenchSettings) -> Result<u64> {
    let keys = KeyGenerator::new(settings.key_bytes as usize, settings.seed);
    let mut batch = vec![Vec::new(); MULTI];
    let (mut value, mut values) = (Vec::new(), vec![(false, Vec::new()); MULTI]);
    let mut found = 0;
    for (at, ranks) in keys.sorted(settings.num).chunks(MULTI).enumerate() {
        batch.truncate(ranks.len());
        values.truncate(ranks.len());
        for (rank, key) in ranks.iter().zip(&mut batch) {
            keys.write(*rank, KeyPresence::Present, key);
        }
        if at.is_multiple_of(2) {
            for key in &batch {
                found += u64::from(engine.get(key, &mut value)?);
            }
        } else {
            engine.multi_get(&batch, &mut values)?;
            found += values.iter().filter(|(found, _)| *found).count() as u64;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate is the share of "maybe" among the probes of filters that lack the key.
    #[test]
    fn the_rate_is_the_share_of_maybes_of_filters_without_the_key() {
        let answers = FilterAnswers { lookups: 500, false_positives: 9, negatives: 891 };
        assert_eq!(answers.rate(), Some(0.01));
        assert_eq!(answers.relative_error(), Some(1.0 / 3.0));
        assert_eq!(answers.probes_per_lookup(), 1.8);
        let unfiltered = FilterAnswers { lookups: 500, ..FilterAnswers::default() };
        assert_eq!((unfiltered.rate(), unfiltered.relative_error()), (None, None));
        let perfect = FilterAnswers { negatives: 10, ..FilterAnswers::default() };
        assert_eq!((perfect.rate(), perfect.relative_error()), (Some(0.0), None));
    }
}
