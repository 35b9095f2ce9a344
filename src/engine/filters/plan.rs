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
//!    by runs × (FPR − FPR′) and costs keys × (bits′ − bits).
//! 3. Take the steps in order of falling gain per bit until the objective is met. The last step applies to a
//!    fraction of the level's segments, so the average lies between two widths.

use crate::filter::{FilterSpec, LINE_BITS, PrefixSet, Width, sizing};
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
        let keys: f64 = sizes.levels.iter().map(|level| level.keys as f64).sum();
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

/// The number of filter members (keys, and distinct prefixes in each segment) and of runs in each level.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LevelSizes {
    levels: [LevelSize; LEVELS],
    /// Prefixes per key, if a filter has shown it.
    prefixes_per_key: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct LevelSize {
    /// Prefixes included.
    keys: u64,
    runs: u32,
}

impl LevelSizes {
    /// The live set's sizes without the segments in `leaving`, whose filters have or will get these prefixes.
    pub fn of<'a>(
        live: &LiveSet,
        leaving: impl IntoIterator<Item = &'a LiveSegment>,
        prefixes: &PrefixSet,
    ) -> Self {
        let known = |s: &LiveSegment| known_members(s, prefixes);
        if prefixes.is_empty() {
            let mut sizes = LevelSizes::default();
            for ((number, level), of) in live.levels().iter().enumerate().zip(&mut sizes.levels) {
                let runs_max = if number == 0 { usize::MAX } else { 1 };
                (of.keys, of.runs) = (level.entries(), level.segments().len().min(runs_max) as u32);
            }
            return sizes.without(leaving, |s| s.meta.entries);
        }
        assert_unlocked();
        let (keys, members) = live
            .segments()
            .filter_map(|s| Some((s.meta.entries, known(s)?)))
            .fold((0u64, 0u64), |sum, (keys, members)| {
                (sum.0.saturating_add(keys), sum.1.saturating_add(members))
            });
        let prefixes_per_key =
            if keys == 0 { 0.0 } else { members.saturating_sub(keys) as f64 / keys as f64 };
        let mut sizes = LevelSizes { prefixes_per_key, ..LevelSizes::default() };
        let empty = sizes;
        let members = |s: &LiveSegment| known(s).unwrap_or_else(|| empty.estimate(s.meta.entries));
        live.segments().for_each(|s| s.level().into_iter().for_each(|level| sizes.add(level, members(s))));
        sizes.without(leaving, members)
    }

    /// The sizes without some segments.
    fn without<'a>(
        mut self,
        leaving: impl IntoIterator<Item = &'a LiveSegment>,
        members: impl Fn(&LiveSegment) -> u64,
    ) -> Self {
        for segment in leaving {
            let number = segment.level();
            if let Some(level) = number.and_then(|number| self.levels.get_mut(usize::from(number))) {
                level.keys = level.keys.saturating_sub(members(segment));
                let left = if number == Some(0) { level.runs.saturating_sub(1) } else { level.runs };
                level.runs = if level.keys == 0 { 0 } else { left };
            }
        }
        self
    }

    /// How many members the filter of this many keys may have.
    fn estimate(&self, keys: u64) -> u64 {
        keys.saturating_add((keys as f64 * self.prefixes_per_key) as u64)
    }

    /// Adds keys, and the prefixes that they may have, to a level.
    pub fn add_entries(&mut self, level: u8, keys: u64) {
        self.add(level, self.estimate(keys));
    }

    /// Adds members to a level: as one more run in level 0, or to the only run of any other level.
    fn add(&mut self, level: u8, keys: u64) {
        if let Some(of) = self.levels.get_mut(usize::from(level)) {
            of.keys = of.keys.saturating_add(keys);
            of.runs = if level == 0 { of.runs + 1 } else { 1 };
        }
    }

    /// Steps 2 and 3: spends at most `budget_bits`, and stops once Σ FPR is at most `rate`.
    fn allocate(&self, budget_bits: f64, rate: f64) -> FilterPlan {
        let smallest = smallest();
        let mut bits: f64 = self.levels.iter().map(|level| level.keys as f64 * smallest.bits).sum();
        let mut sum_fpr: f64 = self.levels.iter().map(|level| f64::from(level.runs) * smallest.fpr).sum();
        let mut plan = FilterPlan::uniform(smallest.spec, sum_fpr);
        let mut steps = Vec::new();
        for (number, level) in self.levels.iter().enumerate().filter(|(_, level)| level.keys > 0) {
            for (from, to) in hull() {
                let cost = level.keys as f64 * (to.bits - from.bits);
                let gain = f64::from(level.runs) * (from.fpr - to.fpr);
                let mix = FilterMix { low: from.spec, high: to.spec, high_fraction: 1.0 };
                steps.push((gain / cost, number, cost, gain, mix));
            }
        }
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, level, cost, gain, step) in steps {
            let high_fraction = ((budget_bits - bits) / cost).min((sum_fpr - rate) / gain).clamp(0.0, 1.0);
            if high_fraction == 0.0 {
                break; // An empty step would replace the level's previous one.
            }
            bits += cost * high_fraction;
            sum_fpr -= gain * high_fraction;
            plan.levels[level] = FilterMix { high_fraction, ..step };
            if high_fraction < 1.0 {
                break;
            }
        }
        plan.sum_fpr = sum_fpr;
        plan
    }
}

/// How many members the filter of a segment has, or would have with these prefixes. `None` if its filter has
/// others or was not read.
fn known_members(segment: &LiveSegment, prefixes: &PrefixSet) -> Option<u64> {
    if prefixes.is_empty() {
        Some(segment.meta.entries)
    } else {
        segment.sidecar.as_ref()?.known_facts().filter(|f| f.prefixes() == prefixes).map(Facts::keys)
    }
}

/// The filters of each level, as [`FilterPolicy::plan`] chose them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FilterPlan {
    levels: [FilterMix; LEVELS],
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

/// New sidecars are worth their cost when Σ FPR deviates from the plan by more than this fraction.
const TOLERANCE: f64 = 0.05;
/// About how many times all segments are scanned before the last of them has its new filter.
const LOOKS_MAX: usize = 64;

impl FilterPlan {
    fn uniform(spec: FilterSpec, sum_fpr: f64) -> Self {
        let mix = FilterMix { low: spec, high: spec, high_fraction: 0.0 };
        FilterPlan { levels: [mix; LEVELS], sum_fpr }
    }

    /// Segments whose filters should be replaced, among those that `may_change`, worst first. A filter is
    /// chosen while its segment is written; by the time the store is idle, the levels may have other sizes.
    /// Empty if Σ FPR is as planned or no change would help. At most one segment in [`LOOKS_MAX`] per scan,
    /// so that not every replacement needs a scan.
    pub fn worst(&self, live: &LiveSet, may_change: impl Fn(&LiveSegment) -> bool) -> Vec<Arc<SegmentMeta>> {
        assert_unlocked();
        let (mut sum, mut segments) = (0.0, 0);
        let mut misfits: Vec<(f64, &LiveSegment)> = Vec::new();
        for (number, level) in live.levels().iter().enumerate() {
            let keys = level.entries();
            for segment in level.segments().iter() {
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

    /// The filter of a segment. A quarantined segment gets that of the level that it left.
    pub fn filter_for(&self, meta: &SegmentMeta) -> FilterSpec {
        self.choose(meta.place.last_level(), meta.id)
    }

    /// The filter of a segment of a level. Multiples of the golden ratio spread any sequence of file numbers
    /// evenly over the unit interval.
    pub fn choose(&self, level: u8, id: FileId) -> FilterSpec {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = self.levels.get(usize::from(level)).unwrap_or(&self.levels[LEVELS - 1]);
        let position = id.0.wrapping_mul(GOLDEN) as f64 / 2f64.powi(64);
        if position < mix.high_fraction { mix.high } else { mix.low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(levels: &[(u64, u32)]) -> LevelSizes {
        let mut sizes = LevelSizes::default();
        sizes.levels.iter_mut().zip(levels).for_each(|(to, &(keys, runs))| *to = LevelSize { keys, runs });
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
        for (mix, level) in plan.levels.iter().zip(&sizes.levels) {
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
        let bits: Vec<f64> = plan.levels[..3].iter().map(|mix| cost_of(mix.low).0).collect();
        assert!(bits[0] > bits[1] && bits[1] > bits[2], "{bits:?}");
        let (average, sum) = cost_and_fpr(&plan, &sizes);
        assert!((average - 10.0).abs() < 1e-9, "{average}");
        let even = 3.0 * 2f64.powi(-9);
        assert!(sum < 0.6 * even, "Σ FPR {sum}, the same bits on every level give {even}");
    }

    #[test]
    fn a_plan_gives_its_fraction_of_segments_the_larger_filter() {
        let one = sizes(&[(1, 1)]);
        for bits in [3.1, 8.0, 9.5, 12.25] {
            let plan = FilterPolicy::bits_per_key(bits).plan(&one).unwrap();
            let total: f64 = (500..1500).map(|id| cost_of(plan.choose(0, FileId(id))).0).sum();
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
