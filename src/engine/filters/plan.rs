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
//!
//! Keyspaces in which more keys are missing, or fewer, than in others are parts of their own: the gain of a
//! step counts as often as lookups of missing keys go there.

use super::level_sizes::{LevelSizes, class_keys, class_of, with_prefixes};
use crate::filter::{FilterSpec, LINE_BITS, Width, sizing};
use crate::id::FileId;
use crate::live::LiveSegment;
use crate::manifest::{LEVELS, SegmentMeta};
use crate::options::{FilterPolicy, Objective};
use crate::sidecar::Facts;
use std::sync::OnceLock;

/// Keyspaces whose filters are alike.
pub(crate) struct Part {
    pub sizes: LevelSizes,
    /// The share of the lookups of missing keys that go there. All shares are 1 together.
    pub share: f64,
}

impl FilterPolicy {
    /// The filters for a store with levels of these sizes; `None` if filters are off.
    pub(crate) fn plan(&self, sizes: LevelSizes) -> Option<FilterPlan> {
        self.plan_parts(&[Part { sizes, share: 1.0 }]).into_iter().next()
    }

    /// The filters of each part of a store; empty if filters are off.
    pub(crate) fn plan_parts(&self, parts: &[Part]) -> Vec<FilterPlan> {
        let keys = || parts.iter().map(|part| part.sizes.keys()).sum::<f64>();
        match self.objective() {
            Objective::Off => Vec::new(),
            Objective::BlockedBloom(bits_per_key) => {
                let spec = FilterSpec::BlockedBloom { bits_per_key };
                parts.iter().map(|part| FilterPlan::uniform(spec, part.share)).collect()
            }
            Objective::AverageBits(bits) => allocate(parts, keys() * bits, 0.0),
            Objective::TotalBytes(bytes) => allocate(parts, bytes as f64 * 8.0, 0.0),
            Objective::SumFpr(rate) => allocate(parts, f64::INFINITY, rate),
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

/// A step up the hull, for the runs of a level or of a class.
struct Step {
    part: usize,
    share: f64,
    /// Of a lookup in this part.
    gain_per_bit: f64,
    /// `None` for a class of runs of level 0.
    level: Option<usize>,
    cost: f64,
    gain: f64,
    mix: FilterMix,
}

/// Steps 2 and 3: spends at most `budget_bits`, and stops once Σ FPR is at most `rate`.
fn allocate(parts: &[Part], budget_bits: f64, rate: f64) -> Vec<FilterPlan> {
    let smallest = smallest();
    let (mut bits, mut sum_fpr) = (0.0, 0.0);
    let (mut plans, mut steps) = (Vec::new(), Vec::new());
    for (number, Part { sizes, share }) in parts.iter().enumerate() {
        let mut plan = FilterPlan::uniform(smallest.spec, *share);
        (plan.level0, plan.prefixes_per_key) = (Some(Price::HIGHEST), sizes.prefixes_per_key);
        plan.bits = 0.0;
        let levels = sizes.levels.iter().enumerate().map(|(level, of)| (Some(level), of.keys as f64, of));
        let level0 = sizes.level0.iter().zip(0..).map(|(of, class)| (None, class_keys(class), of));
        for (level, keys, of) in levels.chain(level0).filter(|(_, _, of)| of.keys > 0) {
            plan.bits += of.keys as f64 * smallest.bits;
            plan.sum_fpr += f64::from(of.runs) * smallest.fpr;
            for (from, to) in hull() {
                steps.push(Step {
                    part: number,
                    share: *share,
                    gain_per_bit: gain_per_bit(keys, from, to),
                    level,
                    cost: of.keys as f64 * (to.bits - from.bits),
                    gain: f64::from(of.runs) * (from.fpr - to.fpr),
                    mix: FilterMix { low: from.spec, high: to.spec, high_fraction: 1.0 },
                });
            }
        }
        bits += plan.bits;
        sum_fpr += share * plan.sum_fpr;
        plans.push(plan);
    }
    let gain_per_bit = |step: &Step| step.share * step.gain_per_bit;
    steps.sort_by(|a, b| gain_per_bit(b).total_cmp(&gain_per_bit(a)));
    for equal in steps.chunk_by(|a, b| gain_per_bit(a) == gain_per_bit(b)) {
        let sum = |(cost, gain), step: &Step| (cost + step.cost, gain + step.share * step.gain);
        let (cost, gain) = equal.iter().fold((0.0, 0.0), sum);
        let high_fraction = ((budget_bits - bits) / cost).min((sum_fpr - rate) / gain).clamp(0.0, 1.0);
        if high_fraction == 0.0 {
            break; // An empty step would replace the level's previous one.
        }
        bits += cost * high_fraction;
        sum_fpr -= gain * high_fraction;
        for step in equal {
            let Some(plan) = plans.get_mut(step.part) else { continue };
            plan.bits += step.cost * high_fraction;
            plan.sum_fpr -= step.gain * high_fraction;
            match step.level {
                Some(level) => plan.levels[level] = FilterMix { high_fraction, ..step.mix },
                None => plan.level0 = Some(Price { gain_per_bit: step.gain_per_bit, high_fraction }),
            }
        }
        if high_fraction < 1.0 {
            break;
        }
    }
    plans
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
    /// The share of the lookups of missing keys that it is for.
    pub(super) share: f64,
    /// The Σ FPR of such a lookup.
    pub(super) sum_fpr: f64,
    /// The size of all its filters; without limit if their width is fixed.
    pub(super) bits: f64,
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

impl FilterPlan {
    fn uniform(spec: FilterSpec, share: f64) -> Self {
        let mix = FilterMix { low: spec, high: spec, high_fraction: 0.0 };
        let levels = [mix; LEVELS];
        FilterPlan { levels, level0: None, prefixes_per_key: 0.0, share, sum_fpr: 0.0, bits: f64::INFINITY }
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
        let plan = FilterPolicy::bits_per_key(10.0).plan(sizes).unwrap();
        let bits = [(0, 100_000), (1, 0), (2, 0)].map(|(level, keys)| cost_of(plan.mix(level, keys).low).0);
        assert!(bits[0] > bits[1] && bits[1] > bits[2], "{bits:?}");
        let (average, sum) = cost_and_fpr(&plan, &sizes);
        assert!((average - 10.0).abs() < 1e-9, "{average}");
        let even = 3.0 * 2f64.powi(-9);
        assert!(sum < 0.6 * even, "Σ FPR {sum}, the same bits on every level give {even}");
    }

    #[test]
    fn parts_with_more_misses_get_wider_filters_and_all_cost_the_same() {
        let sizes = || sizes(&[(50_000, 2), (1_000_000, 1), (10_000_000, 1)]);
        let parts = |shares: [f64; 2]| shares.map(|share| Part { sizes: sizes(), share });
        let policy = FilterPolicy::bits_per_key(10.0);
        let costs = |shares| {
            let plans = policy.plan_parts(&parts(shares));
            let costs = [0, 1].map(|i| cost_and_fpr(&plans[i], &sizes()));
            for (plan, (bits, sum)) in plans.iter().zip(costs) {
                assert!((plan.sum_fpr / sum - 1.0).abs() < 1e-6, "{} and {sum}", plan.sum_fpr);
                assert!((plan.bits / sizes().keys() / bits - 1.0).abs() < 1e-6, "{} and {bits}", plan.bits);
            }
            costs
        };
        let [(many, many_sum), (few, few_sum)] = costs([0.98, 0.02]);
        assert!(many > few + 3.0 && many_sum < few_sum, "{many} and {few} bits per key");
        assert!((many + few - 20.0).abs() < 1e-6, "{many} and {few} bits per key");
        let [(bits, sum), alike] = costs([0.5, 0.5]);
        assert_eq!(alike, (bits, sum));
        assert!(0.98 * many_sum + 0.02 * few_sum < 0.5 * sum, "{many_sum}, {few_sum}, {sum}");
    }

    #[test]
    fn of_the_runs_in_level_0_small_ones_get_the_wider_filters() {
        let mut sizes = sizes(&[(1_700_000, 1), (8_300_000, 1)]);
        (0..3).for_each(|_| sizes.add(0, 250_000));
        let plan = FilterPolicy::default().plan(sizes).unwrap();
        let runs = [(0, 250_000), (0, 1_700_000), (1, 0)];
        let bits = runs.map(|(level, keys)| cost_of(plan.choose(level, keys, FileId(1))).0);
        assert!(bits[0] > bits[1] && bits[1] > bits[2], "{bits:?}");
        let (average, sum) = cost_and_fpr(&plan, &sizes);
        assert!((average - 10.0).abs() < 1e-6, "{average}");
        let alike = self::sizes(&[(2_450_000, 4), (8_300_000, 1)]);
        let (_, of_alike) = cost_and_fpr(&FilterPolicy::default().plan(alike).unwrap(), &alike);
        assert!(sum < 0.97 * of_alike, "Σ FPR {sum}, with one filter for all of level 0 {of_alike}");
    }

    #[test]
    fn a_plan_gives_its_fraction_of_segments_the_larger_filter() {
        let one = sizes(&[(1, 1)]);
        for bits in [3.1, 8.0, 9.5, 12.25] {
            let plan = FilterPolicy::bits_per_key(bits).plan(one).unwrap();
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
            let (average, sum) = cost_and_fpr(&FilterPolicy::bits_per_key(bits).plan(sizes).unwrap(), &sizes);
            prop_assert!((average - bits).abs() < 1e-6);
            // The dual: asking for that rate takes the same memory.
            let (again, rate) = cost_and_fpr(&FilterPolicy::target_fpr(sum).plan(sizes).unwrap(), &sizes);
            prop_assert!(rate <= sum * (1.0 + 1e-9) && (again - bits).abs() < 1e-6, "{again} {rate}");
            // Moving memory between levels never helps: no other plan has the same Σ FPR with less memory.
            let (less, _) = cost_and_fpr(&FilterPolicy::target_fpr(sum * 1.01).plan(sizes).unwrap(), &sizes);
            prop_assert!(less <= bits + 1e-6);
        }
    }
}
