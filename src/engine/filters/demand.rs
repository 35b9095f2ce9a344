//! Where missing keys are looked up, by keyspace: filter bits are worth most there.
//!
//! 1. Nobody counts missing keys by keyspace: that would cost each of them. A filter's wrong "maybe" costs a
//!    read anyway, so that is counted. Divided by the keyspace's Σ FPR, wrong "maybe"s per missing key, it
//!    estimates the missing keys.
//! 2. A keyspace's weight is its share of the missing keys, relative to its share of the entries. Few wrong
//!    "maybe"s tell little, so [`PRIOR`] more are assumed, which would come if all weights were 1. Beyond
//!    [`RECENT`] missing keys, older ones count half.
//! 3. Weights are powers of [`STEP`], and change only if the estimate is clearly another: each change gives
//!    segments new filters, for which they are read.

use crate::engine::metrics::Metrics;
use crate::engine::read::counts::{FilterSums, take_false_positives};
use crate::key::Space;
use crate::live::{LiveSegment, LiveSet};
use crate::sidecar::Facts;
use std::collections::BTreeMap;

/// How many wrong "maybe"s are assumed in each keyspace. A weight changes by chance only if there are ten
/// standard deviations more or fewer than expected.
const PRIOR: f64 = 64.0;
/// About how many missing keys the estimate remembers.
const RECENT: f64 = (1 << 23) as f64;
/// An estimate, which looks at all segments, needs this many wrong "maybe"s.
const SAMPLE_MIN: usize = 32;
/// And one for this many segments.
const SEGMENTS_PER_SAMPLE: usize = 8;
/// The ratio of neighbouring weights.
const STEP: f64 = 4.0;
/// The greatest weight, and the inverse of the least, as a power of [`STEP`].
const POWER_MAX: i8 = 3;
/// A weight changes if the estimate is further from it than this, as a power of [`STEP`]. Halfway to the next
/// one is 0.5.
const HYSTERESIS: f64 = 0.75;

/// How much a bit is worth in one keyspace's filters, relative to the same filters in others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Weight(i8);

impl Weight {
    /// As a factor.
    pub fn factor(self) -> f64 {
        STEP.powi(self.0.into())
    }

    /// This weight, or another if `factor` clearly asks for that.
    fn adjusted(self, factor: f64) -> Weight {
        let power = factor.log(STEP).clamp((-POWER_MAX).into(), POWER_MAX.into());
        if (power - f64::from(self.0)).abs() > HYSTERESIS { Weight(power.round() as i8) } else { self }
    }
}

/// Where missing keys are looked up.
#[derive(Default)]
pub(crate) struct Demand {
    /// Wrong "maybe"s that are not in `misses` yet.
    false_positives: BTreeMap<Space, u64>,
    /// How many there were in all, up to the last look.
    counted: u64,
    /// The recent missing keys, estimated.
    misses: BTreeMap<Space, f64>,
    /// The weights of the keyspaces whose weight is not 1.
    weights: BTreeMap<Space, Weight>,
}

/// What the segments of a keyspace tell.
#[derive(Default, Clone, Copy)]
struct OfKeyspace {
    entries: u64,
    /// The wrong "maybe"s that a lookup of a missing key costs.
    sum_fpr: f64,
}

impl Demand {
    /// The weights of the keyspaces whose weight is not 1, now. Those that `has_own_filters` names have none.
    pub fn weights(
        &mut self,
        metrics: &Metrics,
        live: &LiveSet,
        has_own_filters: impl Fn(Space) -> bool,
    ) -> &BTreeMap<Space, Weight> {
        self.count(metrics);
        let segments: usize = live.levels().iter().map(|level| level.segments().len()).sum();
        let needed = SAMPLE_MIN.max(segments / SEGMENTS_PER_SAMPLE);
        if self.false_positives.values().sum::<u64>() >= needed as u64 {
            let mut keyspaces = keyspaces_of(live);
            keyspaces.retain(|space, _| *space != Space::CATALOG && !has_own_filters(*space));
            self.estimate(&keyspaces);
            self.weigh(&keyspaces);
        }
        &self.weights
    }

    fn count(&mut self, metrics: &Metrics) {
        let before: u64 = self.false_positives.values().sum();
        take_false_positives(&metrics.filters, &mut self.false_positives);
        let of_others = self.false_positives.values().sum::<u64>() - before;
        let all = FilterSums::of(&metrics.filters).false_positives.iter().sum::<u64>();
        let of_default = all.saturating_sub(self.counted).saturating_sub(of_others);
        *self.false_positives.entry(Space::DEFAULT).or_default() += of_default;
        self.counted = all.max(self.counted);
    }

    /// Turns the wrong "maybe"s since the last time into missing keys.
    fn estimate(&mut self, keyspaces: &BTreeMap<Space, OfKeyspace>) {
        for (space, wrong) in std::mem::take(&mut self.false_positives) {
            if let Some(of) = keyspaces.get(&space).filter(|of| of.sum_fpr > 0.0) {
                *self.misses.entry(space).or_default() += wrong as f64 / of.sum_fpr;
            }
        }
        let all: f64 = self.misses.values().sum();
        let keep = if all > RECENT { RECENT / 2.0 / all } else { 1.0 };
        self.misses.retain(|space, misses| {
            *misses *= keep;
            keyspaces.contains_key(space)
        });
    }

    fn weigh(&mut self, keyspaces: &BTreeMap<Space, OfKeyspace>) {
        let entries: f64 = keyspaces.values().map(|of| of.entries as f64).sum();
        let all: f64 = self.misses.values().sum();
        let before = std::mem::take(&mut self.weights);
        for (space, of) in keyspaces.iter().filter(|(_, of)| of.entries > 0) {
            let expected = all * of.entries as f64 / entries;
            let misses = self.misses.get(space).copied().unwrap_or(0.0);
            let mut weight = before.get(space).copied().unwrap_or_default();
            if of.sum_fpr > 0.0 {
                let assumed = PRIOR / of.sum_fpr;
                weight = weight.adjusted((misses + assumed) / (expected + assumed));
            }
            self.weights.insert(*space, weight);
        }
        let mut all = self.weights.values();
        let first = all.next().copied();
        let alike = all.all(|weight| Some(*weight) == first);
        self.weights.retain(|_, weight| !alike && *weight != Weight::default());
    }
}

/// What the segments of each keyspace tell. The entries are those of segments that it does not share.
fn keyspaces_of(live: &LiveSet) -> BTreeMap<Space, OfKeyspace> {
    let mut keyspaces: BTreeMap<Space, OfKeyspace> = BTreeMap::new();
    let mut runs: BTreeMap<(Space, u8), (f64, f64)> = BTreeMap::new();
    let mut shared: Vec<(&LiveSegment, f64)> = Vec::new();
    for segment in live.segments() {
        // Without a filter, nothing is counted.
        let fpr = segment.verified_facts().map_or(0.0, Facts::expected_fpr);
        let (Some(owner), Some(level)) = (segment.meta.owner(), segment.level()) else {
            shared.push((segment, fpr));
            continue;
        };
        let entries = segment.meta.entries;
        let of = keyspaces.entry(owner).or_default();
        of.entries = of.entries.saturating_add(entries);
        if level == 0 {
            of.sum_fpr += fpr;
        } else {
            let run = runs.entry((owner, level)).or_default();
            *run = (run.0 + entries as f64, run.1 + entries as f64 * fpr);
        }
    }
    for ((owner, _), (entries, weighted)) in runs {
        if let Some(of) = keyspaces.get_mut(&owner) {
            of.sum_fpr += weighted / entries.max(1.0);
        }
    }
    for (segment, fpr) in shared {
        let ends = (Space::of(&segment.meta.smallest), Space::of(&segment.meta.largest));
        let (Some(first), Some(last)) = ends else { continue };
        if first <= last {
            keyspaces.range_mut(first..=last).for_each(|(_, of)| of.sum_fpr += fpr);
        }
    }
    keyspaces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two keyspaces with these shares of the entries, in a million, and the same filters.
    fn two(first: u64) -> BTreeMap<Space, OfKeyspace> {
        let of = |entries| OfKeyspace { entries, sum_fpr: 0.01 };
        BTreeMap::from([(Space::new(1), of(first)), (Space::new(2), of(1_000_000 - first))])
    }

    /// The weights after lookups of missing keys in both.
    fn after(demand: &mut Demand, keyspaces: &BTreeMap<Space, OfKeyspace>, misses: [u64; 2]) -> [i8; 2] {
        let spaces = [Space::new(1), Space::new(2)];
        demand.false_positives = spaces.into_iter().zip(misses.map(|n| n / 100)).collect();
        demand.estimate(keyspaces);
        demand.weigh(keyspaces);
        spaces.map(|space| demand.weights.get(&space).map_or(0, |weight| weight.0))
    }

    #[test]
    fn weights_follow_the_lookups_of_missing_keys() {
        let (mut demand, even) = (Demand::default(), two(500_000));
        assert_eq!(after(&mut demand, &even, [20_000, 0]), [0, 0], "too few to tell");
        let [first, second] = after(&mut demand, &even, [3_000_000, 0]);
        assert!(first - second >= 2, "{first} and {second}");
        for _ in 0..20 {
            after(&mut demand, &even, [0, 3_000_000]);
        }
        let [first, second] = after(&mut demand, &even, [0, 3_000_000]);
        assert!(second - first >= 2, "what was long ago still counts: {first} and {second}");
    }

    #[test]
    fn chance_gives_no_keyspace_a_weight() {
        let of = OfKeyspace { entries: 1000, sum_fpr: 0.002 };
        let keyspaces: BTreeMap<Space, OfKeyspace> = (0..4000).map(|n| (Space::new(n), of)).collect();
        let (mut demand, mut random) = (Demand::default(), fastrand::Rng::with_seed(7));
        for _ in 0..20 {
            for _ in 0..12_000 {
                *demand.false_positives.entry(Space::new(random.u32(0..4000))).or_default() += 1;
            }
            demand.estimate(&keyspaces);
            demand.weigh(&keyspaces);
            assert!(demand.weights.is_empty(), "{:?}", demand.weights);
        }
        demand.false_positives = BTreeMap::from([(Space::new(9), 12_000)]);
        demand.estimate(&keyspaces);
        demand.weigh(&keyspaces);
        assert_eq!(Vec::from_iter(demand.weights.keys()), [&Space::new(9)]);
    }

    #[test]
    fn a_keyspace_with_as_many_misses_as_its_entries_suggest_has_no_weight() {
        let (mut demand, uneven) = (Demand::default(), two(10_000));
        for _ in 0..10 {
            assert_eq!(after(&mut demand, &uneven, [10_000, 990_000]), [0, 0]);
        }
        let [first, second] = after(&mut demand, &uneven, [1_000_000, 0]);
        assert!(first >= 1 && second == 0, "{first} and {second}");
    }

    /// Each change of a weight gives segments new filters.
    #[test]
    fn an_estimate_between_two_weights_changes_nothing() {
        let (mut demand, even) = (Demand::default(), two(500_000));
        // Three and a half times as many in one: the ratio of the estimates is about 4 to the power of 0.9.
        let first = after(&mut demand, &even, [7_000_000, 2_000_000]);
        for n in 0..50 {
            let more = if n % 2 == 0 { [2_100_000, 500_000] } else { [1_400_000, 500_000] };
            assert_eq!(after(&mut demand, &even, more), first, "{n}");
        }
    }
}
