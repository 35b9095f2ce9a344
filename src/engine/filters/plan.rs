//! Decides how many filter bits each level gets.
//!
//! A lookup of a missing key within the range of every run costs Σ FPR false reads, the sum of the runs'
//! false-positive rates; the memory cost is keys × bits. So each bit is spent where it lowers the sum most
//! (Dayan, Athanassoulis, Idreos, "Monkey: Optimal Navigable Key-Value Store", 2017): the upper levels are
//! small and get wide filters at almost no cost. The algorithm:
//!
//! 1. Take the lower convex hull of the available filters in (bits per key, FPR). A mix of two filters on the
//!    hull beats any filter above it.
//! 2. Give every level the smallest filter. For every level, list the steps up the hull: a step lowers Σ FPR
//!    by runs × (FPR − FPR′) and costs keys × (bits′ − bits). In level 0, each segment is a run, and their
//!    sizes differ; runs within one power of two count as a level of their own.
//! 3. Take the steps in order of falling gain per bit until the objective is met. The last step applies to a
//!    fraction of the level's segments, so the average lies between two widths.

use super::level_sizes::{LevelSizes, class_keys, class_of, with_prefixes};
use crate::filter::{FilterSpec, LINE_BITS, Width, sizing};
use crate::id::FileId;
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::{LEVELS, SegmentMeta};
use crate::options::{FilterPolicy, Objective};
use crate::sidecar::Facts;
use crate::sync::assert_unlocked;
use std::sync::{Arc, OnceLock};

impl FilterPolicy {
    /// The filters for a store with levels of these sizes; `None` if filters are off.
    pub(crate) fn plan(&self, sizes: &LevelSizes) -> Option<FilterPlan> {
        let keys: f64 = sizes.levels.iter().chain(&sizes.level0).map(|of| of.keys as f64).sum();
        match self.objective() {
            Objective::Off => None,
            Objective::BlockedBloom(bits_per_key) => {
                Some(FilterPlan::uniform(FilterSpec::BlockedBloom { bits_per_key }, 0.0))
            }
            Objective::AverageBits(bits) => Some(sizes.allocate(keys * bits, 0.0)),
            Objective::TotalBytes(bytes) => Some(sizes.allocate(bytes as f64 * 8.0, 0.0)),
            Objective::SumFpr(rate) => Some(sizes.allocate(f64::INFINITY, rate)),
        }
    }
}

/// Bits per key of the smallest filter of any segment.
const SMALLEST_BITS: u64 = 2;

/// A filter with its cost and its false-positive rate.
#[derive(Debug, Clone, Copy)]
struct FilterChoice {
    spec: FilterSpec,
    bits: f64,
    fpr: f64,
}

impl FilterChoice {
    /// A blocked Bloom filter with its exact rate.
    fn bloom(bits: u64) -> Self {
        let (keys, bits_per_key) = (1 << 20, bits as f64);
        let lines = keys * bits / LINE_BITS as u64;
        let fpr = sizing::blocked_fpr(keys, lines, sizing::best_k(keys, lines));
        FilterChoice { spec: FilterSpec::BlockedBloom { bits_per_key }, bits: bits_per_key, fpr }
    }

    fn parity(width: Width) -> Self {
        FilterChoice { spec: FilterSpec::Parity { width }, bits: width.bits_per_key(), fpr: width.fpr() }
    }
}

/// The smallest filter of any level. Computed once: every background thread looking for work plans filters.
fn smallest() -> FilterChoice {
    static SMALLEST: OnceLock<FilterChoice> = OnceLock::new();
    *SMALLEST.get_or_init(|| FilterChoice::bloom(SMALLEST_BITS))
}

/// The steps up the hull, as (from, to): Bloom filters below the narrowest parity filter, then parity widths.
fn hull() -> &'static [(FilterChoice, FilterChoice)] {
    static HULL: OnceLock<Vec<(FilterChoice, FilterChoice)>> = OnceLock::new();
    HULL.get_or_init(|| {
        let mut hull: Vec<FilterChoice> = Vec::new();
        for choice in (SMALLEST_BITS..=7).map(FilterChoice::bloom).chain(Width::ALL.map(FilterChoice::parity))
        {
            while let [.., a, b] = hull[..]
                && (b.fpr - a.fpr) * (choice.bits - a.bits) >= (choice.fpr - a.fpr) * (b.bits - a.bits)
            {
                hull.pop();
            }
            hull.push(choice);
        }
        hull.iter().copied().zip(hull.iter().copied().skip(1)).collect()
    })
}

impl LevelSizes {
    /// Steps 2 and 3: spends at most `budget_bits`, and stops once Σ FPR is at most `rate`.
    fn allocate(&self, budget_bits: f64, rate: f64) -> FilterPlan {
        let smallest = smallest();
        let levels = self.levels.iter().enumerate().map(|(number, of)| (Some(number), of.keys as f64, of));
        let level0 = self.level0.iter().zip(0..).map(|(of, class)| (None, class_keys(class), of));
        let sizes: Vec<_> = levels.chain(level0).filter(|(_, _, of)| of.keys > 0).collect();
        let mut bits: f64 = sizes.iter().map(|(_, _, of)| of.keys as f64 * smallest.bits).sum();
        let mut sum_fpr: f64 = sizes.iter().map(|(_, _, of)| f64::from(of.runs) * smallest.fpr).sum();
        let mut plan = FilterPlan::uniform(smallest.spec, sum_fpr);
        (plan.level0, plan.prefixes_per_key) = (Some(Price::HIGHEST), self.prefixes_per_key);
        let mut steps = Vec::new();
        for (number, keys, of) in sizes {
            for (from, to) in hull() {
                let cost = of.keys as f64 * (to.bits - from.bits);
                let gain = f64::from(of.runs) * (from.fpr - to.fpr);
                let mix = FilterMix { low: from.spec, high: to.spec, high_fraction: 1.0 };
                steps.push((gain_per_bit(keys, from, to), number, cost, gain, mix));
            }
        }
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        for equal in steps.chunk_by(|a, b| a.0 == b.0) {
            let (cost, gain) =
                equal.iter().fold((0.0, 0.0), |(cost, gain), step| (cost + step.2, gain + step.3));
            let high_fraction = ((budget_bits - bits) / cost).min((sum_fpr - rate) / gain).clamp(0.0, 1.0);
            if high_fraction == 0.0 {
                break; // An empty step would replace the level's previous one.
            }
            bits += cost * high_fraction;
            sum_fpr -= gain * high_fraction;
            for (gain_per_bit, level, _, _, step) in equal {
                match level {
                    Some(level) => plan.levels[*level] = FilterMix { high_fraction, ..*step },
                    None => plan.level0 = Some(Price { gain_per_bit: *gain_per_bit, high_fraction }),
                }
            }
            if high_fraction < 1.0 {
                break;
            }
        }
        plan.sum_fpr = sum_fpr;
        plan
    }
}

/// How much a step lowers the false-positive rate of a run of this many keys, for each bit.
fn gain_per_bit(keys: f64, from: &FilterChoice, to: &FilterChoice) -> f64 {
    (from.fpr - to.fpr) / (keys * (to.bits - from.bits))
}

/// The filters of each level, as [`FilterPolicy::plan`] chose them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FilterPlan {
    levels: [FilterMix; LEVELS],
    /// What chooses in level 0, if its runs may get different filters.
    level0: Option<Price>,
    prefixes_per_key: f64,
    /// The Σ FPR that results.
    sum_fpr: f64,
}

/// Two neighbours on the hull, and the fraction of the level's segments that get the larger one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FilterMix {
    low: FilterSpec,
    high: FilterSpec,
    high_fraction: f64,
}

/// A run of level 0 takes the steps that gain more per bit, and this fraction of the runs those that gain
/// just as much.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Price {
    gain_per_bit: f64,
    high_fraction: f64,
}

impl Price {
    /// Nothing gains more.
    const HIGHEST: Price = Price { gain_per_bit: f64::INFINITY, high_fraction: 0.0 };

    fn mix_for(&self, keys: u64) -> FilterMix {
        let keys = class_keys(class_of(keys));
        let lowest = smallest().spec;
        let mut mix = FilterMix { low: lowest, high: lowest, high_fraction: 0.0 };
        for (from, to) in hull() {
            let gain = gain_per_bit(keys, from, to);
            if gain < self.gain_per_bit {
                break;
            }
            let high_fraction = if gain > self.gain_per_bit { 1.0 } else { self.high_fraction };
            mix = FilterMix { low: from.spec, high: to.spec, high_fraction };
        }
        mix
    }
}

/// New sidecars are worth their cost when Σ FPR deviates from the plan by more than this fraction.
const TOLERANCE: f64 = 0.05;
/// About how many times all segments are scanned before the last of them has its new filter.
const LOOKS_MAX: usize = 64;

impl FilterPlan {
    fn uniform(spec: FilterSpec, sum_fpr: f64) -> Self {
        let mix = FilterMix { low: spec, high: spec, high_fraction: 0.0 };
        FilterPlan { levels: [mix; LEVELS], level0: None, prefixes_per_key: 0.0, sum_fpr }
    }

    /// Segments whose filters should be replaced, among those that `may_change`, worst first. A filter is
    /// chosen while its segment is written; by the time the store is idle, the levels may have other sizes.
    /// Empty if Σ FPR is as planned or no change would help. At most one segment in [`LOOKS_MAX`] per scan,
    /// so that not every replacement needs a scan.
    /// It is the plan of the segments that `is_planned` accepts.
    pub fn worst(
        &self,
        live: &LiveSet,
        is_planned: impl Fn(&LiveSegment) -> bool,
        may_change: impl Fn(&LiveSegment) -> bool,
    ) -> Vec<Arc<SegmentMeta>> {
        assert_unlocked();
        let (mut sum, mut segments) = (0.0, 0);
        let mut misfits: Vec<(f64, &LiveSegment)> = Vec::new();
        for (number, level) in live.levels().iter().enumerate() {
            let planned = level.segments().iter().filter(|segment| is_planned(segment));
            let keys: u64 = planned.clone().map(|segment| segment.meta.entries).sum();
            for segment in planned {
                segments += 1;
                let Some(filter) = segment.verified_facts() else { continue };
                let weight = if number == 0 { 1.0 } else { segment.meta.entries as f64 / keys.max(1) as f64 };
                let fpr = weight * filter.expected_fpr();
                sum += fpr;
                if !self.suits(segment) && may_change(segment) {
                    misfits.push((fpr, segment));
                }
            }
        }
        let deviates = (sum - self.sum_fpr).abs() > TOLERANCE * self.sum_fpr;
        misfits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let most = if deviates { 1 + segments / LOOKS_MAX } else { 0 };
        misfits.into_iter().take(most).map(|(_, segment)| Arc::clone(&segment.meta)).collect()
    }

    /// Whether a segment's filter is the one that the plan chooses. The sidecar check handles segments
    /// without a verified filter.
    pub fn suits(&self, segment: &LiveSegment) -> bool {
        let spec = self.filter_for(&segment.meta);
        let is_chosen = |of: &Facts| of.kind().matches_spec(spec, of.keys(), of.lines());
        segment.verified_facts().is_none_or(is_chosen)
    }

    /// The filter of a segment. A quarantined segment gets that of the level that it left. Multiples of the
    /// golden ratio spread any sequence of file numbers evenly over the unit interval.
    pub fn filter_for(&self, meta: &SegmentMeta) -> FilterSpec {
        self.choose(meta.place.last_level(), meta.entries, meta.id)
    }

    fn choose(&self, level: u8, entries: u64, id: FileId) -> FilterSpec {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = self.mix(level, with_prefixes(entries, self.prefixes_per_key));
        let position = id.0.wrapping_mul(GOLDEN) as f64 / 2f64.powi(64);
        if position < mix.high_fraction { mix.high } else { mix.low }
    }

    /// The filters of a level's segments with this many members.
    fn mix(&self, level: u8, keys: u64) -> FilterMix {
        match &self.level0 {
            Some(price) if level == 0 => price.mix_for(keys),
            _ => *self.levels.get(usize::from(level)).unwrap_or(&self.levels[LEVELS - 1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(levels: &[(u64, u32)]) -> LevelSizes {
        let mut sizes = LevelSizes::default();
        for (number, &(keys, runs)) in (0..).zip(levels) {
            let runs = if number == 0 { runs } else { 1 };
            (0..runs).for_each(|_| sizes.add(number, keys / u64::from(runs)));
        }
        sizes
    }

    fn cost_of(spec: FilterSpec) -> (f64, f64) {
        let mut choices = hull().iter().flat_map(|(from, to)| [from, to]);
        let choice = choices.find(|choice| choice.spec == spec).unwrap();
        (choice.bits, choice.fpr)
    }

    /// Average bits per key and Σ FPR of a plan.
    fn cost_and_fpr(plan: &FilterPlan, sizes: &LevelSizes) -> (f64, f64) {
        let (mut bits, mut keys, mut sum) = (0.0, 0.0, 0.0);
        let levels = sizes.levels.iter().zip(0..).map(|(of, number)| (plan.mix(number, 0), of));
        let level0 = sizes.level0.iter().zip(0..).map(|(of, class)| (plan.mix(0, 1 << class), of));
        for (mix, level) in levels.chain(level0).filter(|(_, of)| of.keys > 0) {
            let ((low_bits, low_fpr), (high_bits, high_fpr)) = (cost_of(mix.low), cost_of(mix.high));
            bits += level.keys as f64 * (low_bits + mix.high_fraction * (high_bits - low_bits));
            sum += f64::from(level.runs) * (low_fpr + mix.high_fraction * (high_fpr - low_fpr));
            keys += level.keys as f64;
        }
        (bits / keys, sum)
    }

    #[test]
    fn the_hull_falls_ever_more_slowly() {
        let slopes: Vec<f64> = hull().iter().map(|(a, b)| (a.fpr - b.fpr) / (b.bits - a.bits)).collect();
        assert!(slopes.windows(2).all(|w| w[0] > w[1] && w[1] > 0.0), "{slopes:?}");
    }

    #[test]
    fn small_upper_levels_get_the_wider_filters() {
        let sizes = sizes(&[(100_000, 1), (1_000_000, 1), (10_000_000, 1)]);
        let plan = FilterPolicy::bits_per_key(10.0).plan(&sizes).unwrap();
        let bits = [(0, 100_000), (1, 0), (2, 0)].map(|(level, keys)| cost_of(plan.mix(level, keys).low).0);
        assert!(bits[0] > bits[1] && bits[1] > bits[2], "{bits:?}");
        let (average, sum) = cost_and_fpr(&plan, &sizes);
        assert!((average - 10.0).abs() < 1e-9, "{average}");
        let even = 3.0 * 2f64.powi(-9);
        assert!(sum < 0.6 * even, "Σ FPR {sum}, the same bits on every level give {even}");
    }

    #[test]
    fn of_the_runs_in_level_0_small_ones_get_the_wider_filters() {
        let mut sizes = sizes(&[(1_700_000, 1), (8_300_000, 1)]);
        (0..3).for_each(|_| sizes.add(0, 250_000));
        let plan = FilterPolicy::default().plan(&sizes).unwrap();
        let runs = [(0, 250_000), (0, 1_700_000), (1, 0)];
        let bits = runs.map(|(level, keys)| cost_of(plan.choose(level, keys, FileId(1))).0);
        assert!(bits[0] > bits[1] && bits[1] > bits[2], "{bits:?}");
        let (average, sum) = cost_and_fpr(&plan, &sizes);
        assert!((average - 10.0).abs() < 1e-6, "{average}");
        let alike = self::sizes(&[(2_450_000, 4), (8_300_000, 1)]);
        let (_, of_alike) = cost_and_fpr(&FilterPolicy::default().plan(&alike).unwrap(), &alike);
        assert!(sum < 0.97 * of_alike, "Σ FPR {sum}, with one filter for all of level 0 {of_alike}");
    }

    #[test]
    fn a_plan_gives_its_fraction_of_segments_the_larger_filter() {
        let one = sizes(&[(1, 1)]);
        for bits in [3.1, 8.0, 9.5, 12.25] {
            let plan = FilterPolicy::bits_per_key(bits).plan(&one).unwrap();
            let total: f64 = (500..1500).map(|id| cost_of(plan.choose(0, 1, FileId(id))).0).sum();
            assert!((total / 1000.0 - bits).abs() < 0.05, "{bits}: {total}");
        }
    }

    proptest! {
        #[test]
        fn budgets_and_rates_are_met_and_no_neighbouring_plan_is_better(
            levels in prop::collection::vec((0u64..1 << 30, 1u32..5), 1..6), bits in 2.0f64..18.0,
        ) {
            let sizes = sizes(&levels);
            prop_assume!(levels.iter().any(|(keys, _)| *keys > 0));
            let (average, sum) = cost_and_fpr(&FilterPolicy::bits_per_key(bits).plan(&sizes).unwrap(), &sizes);
            prop_assert!((average - bits).abs() < 1e-6);
            // The dual: asking for that rate takes the same memory.
            let (again, rate) = cost_and_fpr(&FilterPolicy::target_fpr(sum).plan(&sizes).unwrap(), &sizes);
            prop_assert!(rate <= sum * (1.0 + 1e-9) && (again - bits).abs() < 1e-6, "{again} {rate}");
            // Moving memory between levels never helps: no other plan has the same Σ FPR with less memory.
            let (less, _) = cost_and_fpr(&FilterPolicy::target_fpr(sum * 1.01).plan(&sizes).unwrap(), &sizes);
            prop_assert!(less <= bits + 1e-6);
        }
    }
}
