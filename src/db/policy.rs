//! Which filter a segment gets.
//!
//! A missing key within the range of every run pays Σ FPR, the sum of the runs' false-positive rates, while memory pays keys × bits.
//! So bits go where they lower the sum most per bit (Dayan, Athanassoulis, Idreos, "Monkey: Optimal Navigable Key-Value Store",
//! 2017): the upper levels are small and get wide filters for next to nothing. The algorithm, on the filters that exist:
//!
//! 1. Take the lower convex hull of their (bits per key, FPR): a linear mix of the others beats what is not on it.
//! 2. Give every level the smallest filter. Collect the steps up the hull, of every level: a step lowers Σ FPR by
//!    runs × (FPR − FPR′) and costs keys × (bits′ − bits).
//! 3. Take steps by falling gain per bit until the goal is met. The last one is taken for a share of the level's segments, so that
//!    the average comes out right between two widths.

use crate::error::{Error, Result};
use crate::filter::{FilterSpec, LINE_BITS, Width, sizing};
use crate::id::FileId;
use crate::manifest::{LEVELS, LiveSegment, LiveSet};
use std::sync::OnceLock;

/// Which filters segments get, and whether filters are asked at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FilterPolicy {
    goal: Goal,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    Off,
    /// Bits per key, on average over the store.
    Average(f64),
    /// Σ FPR over the runs.
    Rate(f64),
    /// Bytes of all filters together.
    Memory(u64),
    /// Blocked Bloom filters of the same bits per key everywhere.
    Bloom(f64),
}

impl FilterPolicy {
    /// No filter is asked and none is written; sidecars that exist are left alone. For measuring what filters save.
    pub const OFF: FilterPolicy = FilterPolicy { goal: Goal::Off };

    /// Parity filters with this many bits per key on average over the store, spread over the levels so that a missing key meets the
    /// fewest false positives. 2 to 64, where more than 19 is not made use of.
    pub const fn bits_per_key(bits: f64) -> Self {
        FilterPolicy { goal: Goal::Average(bits) }
    }

    /// The least memory with which a missing key meets at most this many false positives on average, all runs together (0 to 1,
    /// exclusive). The widest filters give 0.0015 % a run; a rate below that gets them.
    pub const fn target_fpr(rate: f64) -> Self {
        FilterPolicy { goal: Goal::Rate(rate) }
    }

    /// At most this many bytes of filters for the whole store, spread as with [`bits_per_key`](Self::bits_per_key). As the store
    /// grows, new segments get fewer bits. The least is 2 bits per key, even where that takes more.
    pub const fn memory_budget(bytes: u64) -> Self {
        FilterPolicy { goal: Goal::Memory(bytes) }
    }

    /// Blocked Bloom filters of the same size on every level, as other stores have them. 2 to 64 bits per key.
    pub const fn blocked_bloom(bits_per_key: f64) -> Self {
        FilterPolicy { goal: Goal::Bloom(bits_per_key) }
    }

    /// Whether filters are asked and written.
    pub fn is_on(&self) -> bool {
        self.goal != Goal::Off
    }

    pub(crate) fn validate(&self) -> Result<()> {
        let problem = match self.goal {
            Goal::Average(bits) | Goal::Bloom(bits) => {
                let allowed = sizing::MIN_BITS_PER_KEY..=sizing::MAX_BITS_PER_KEY;
                (!allowed.contains(&bits)).then(|| format!("{bits} bits per key: a filter takes 2 to 64"))
            }
            Goal::Rate(rate) => (!(rate > 0.0 && rate < 1.0))
                .then(|| format!("a false-positive rate of {rate}: it must be between 0 and 1")),
            Goal::Off | Goal::Memory(_) => None,
        };
        problem.map_or(Ok(()), |what| Err(Error::InvalidArgument(what)))
    }

    /// For a file: which goal, and its number.
    pub(crate) fn to_code(self) -> (u8, u64) {
        match self.goal {
            Goal::Off => (0, 0),
            Goal::Average(bits) => (1, bits.to_bits()),
            Goal::Rate(rate) => (2, rate.to_bits()),
            Goal::Memory(bytes) => (3, bytes),
            Goal::Bloom(bits) => (4, bits.to_bits()),
        }
    }

    /// What [`to_code`](Self::to_code) has made of a policy that is allowed; `None` for anything else.
    pub(crate) fn from_code(code: u8, number: u64) -> Option<Self> {
        let goal = match code {
            0 if number == 0 => Goal::Off,
            1 => Goal::Average(f64::from_bits(number)),
            2 => Goal::Rate(f64::from_bits(number)),
            3 => Goal::Memory(number),
            4 => Goal::Bloom(f64::from_bits(number)),
            _ => return None,
        };
        Some(FilterPolicy { goal }).filter(|policy| policy.validate().is_ok())
    }

    /// The filters for a store of this shape; `None` when filters are off.
    pub(crate) fn plan(&self, shape: &Shape) -> Option<FilterPlan> {
        let keys: f64 = shape.levels.iter().map(|level| level.keys as f64).sum();
        match self.goal {
            Goal::Off => None,
            Goal::Bloom(bits_per_key) => {
                let spec = FilterSpec::BlockedBloom { bits_per_key };
                Some(FilterPlan {
                    shares: [Share { low: spec, high: spec, of_high: 0.0 }; LEVELS],
                    sum_fpr: 0.0,
                })
            }
            Goal::Average(bits) => Some(shape.allocate(keys * bits, 0.0)),
            Goal::Memory(bytes) => Some(shape.allocate(bytes as f64 * 8.0, 0.0)),
            Goal::Rate(rate) => Some(shape.allocate(f64::INFINITY, rate)),
        }
    }
}

impl Default for FilterPolicy {
    /// 10 bits per key on average.
    fn default() -> Self {
        FilterPolicy::bits_per_key(10.0)
    }
}

/// Bits per key of the smallest filter that any segment gets.
const SMALLEST_BITS: u64 = 2;

/// A filter to choose, with what it costs and gives.
#[derive(Debug, Clone, Copy)]
struct Choice {
    spec: FilterSpec,
    bits: f64,
    fpr: f64,
}

impl Choice {
    /// A Bloom filter, by its exact rate.
    fn bloom(bits: u64) -> Self {
        let (keys, bits_per_key) = (1 << 20, bits as f64);
        let lines = keys * bits / LINE_BITS as u64;
        let fpr = sizing::blocked_fpr(keys, lines, sizing::best_k(keys, lines));
        Choice { spec: FilterSpec::BlockedBloom { bits_per_key }, bits: bits_per_key, fpr }
    }

    fn parity(width: Width) -> Self {
        Choice { spec: FilterSpec::Parity { width }, bits: width.bits_per_key(), fpr: width.fpr() }
    }
}

/// The hull of step 1 above the smallest filter: Bloom filters where parity filters do not reach down to, then the parity widths.
/// Each step as (from, to).
fn hull() -> &'static [(Choice, Choice)] {
    static HULL: OnceLock<Vec<(Choice, Choice)>> = OnceLock::new();
    HULL.get_or_init(|| {
        let mut hull: Vec<Choice> = Vec::new();
        for choice in (SMALLEST_BITS..=7).map(Choice::bloom).chain(Width::ALL.map(Choice::parity)) {
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

/// How many keys and runs each level has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    levels: [LevelShape; LEVELS],
}

#[derive(Debug, Clone, Copy, Default)]
struct LevelShape {
    keys: u64,
    runs: u32,
}

impl Shape {
    /// The shape of the live set once `leaving` have left it.
    pub fn of<'a>(live: &LiveSet, leaving: impl IntoIterator<Item = &'a LiveSegment>) -> Self {
        let mut shape = Shape::default();
        live.segments().for_each(|s| shape.add(s.meta.level, s.meta.entries));
        for segment in leaving {
            if let Some(level) = shape.levels.get_mut(usize::from(segment.meta.level)) {
                level.keys = level.keys.saturating_sub(segment.meta.entries);
                let left = if segment.meta.level == 0 { level.runs.saturating_sub(1) } else { level.runs };
                level.runs = if level.keys == 0 { 0 } else { left };
            }
        }
        shape
    }

    /// Adds keys to a level: one more run in level 0, the one run of another.
    pub fn add(&mut self, level: u8, keys: u64) {
        if let Some(of) = self.levels.get_mut(usize::from(level)) {
            of.keys += keys;
            of.runs = if level == 0 { of.runs + 1 } else { 1 };
        }
    }

    /// Steps 2 and 3: spends up to `budget_bits`, and no more than a Σ FPR of `rate` takes.
    fn allocate(&self, budget_bits: f64, rate: f64) -> FilterPlan {
        let smallest = Choice::bloom(SMALLEST_BITS);
        let mut plan = FilterPlan {
            shares: [Share { low: smallest.spec, high: smallest.spec, of_high: 0.0 }; LEVELS],
            sum_fpr: 0.0,
        };
        let mut bits: f64 = self.levels.iter().map(|level| level.keys as f64 * smallest.bits).sum();
        let mut sum_fpr: f64 = self.levels.iter().map(|level| f64::from(level.runs) * smallest.fpr).sum();
        let mut steps = Vec::new();
        for (number, level) in self.levels.iter().enumerate().filter(|(_, level)| level.keys > 0) {
            for (from, to) in hull() {
                let cost = level.keys as f64 * (to.bits - from.bits);
                let gain = f64::from(level.runs) * (from.fpr - to.fpr);
                steps.push((
                    gain / cost,
                    number,
                    cost,
                    gain,
                    Share { low: from.spec, high: to.spec, of_high: 1.0 },
                ));
            }
        }
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, level, cost, gain, step) in steps {
            let of_high = ((budget_bits - bits) / cost).min((sum_fpr - rate) / gain).clamp(0.0, 1.0);
            if of_high == 0.0 {
                break; // The share stays whole: a step of nothing would forget the one before it.
            }
            bits += cost * of_high;
            sum_fpr -= gain * of_high;
            plan.shares[level] = Share { of_high, ..step };
            if of_high < 1.0 {
                break;
            }
        }
        plan.sum_fpr = sum_fpr;
        plan
    }
}

/// What [`FilterPolicy::plan`] decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilterPlan {
    shares: [Share; LEVELS],
    /// The Σ FPR that it comes to.
    sum_fpr: f64,
}

/// Two neighbours on the hull, and the share of segments that gets the higher one.
#[derive(Debug, Clone, Copy)]
struct Share {
    low: FilterSpec,
    high: FilterSpec,
    of_high: f64,
}

/// A plan is worth new sidecars when Σ FPR is off by more than this share.
const TOLERANCE: f64 = 0.05;

impl FilterPlan {
    /// The segment to give a new sidecar first, of those that `may_change`: filters are chosen while their segments are written, and by
    /// the time that the store comes to rest its levels have other sizes. `None` when the sum is as planned, or nothing would change it.
    pub fn worst<'a>(
        &self,
        live: &'a LiveSet,
        may_change: impl Fn(&LiveSegment) -> bool,
    ) -> Option<&'a LiveSegment> {
        let mut sum = 0.0;
        let mut worst: Option<(f64, &LiveSegment)> = None;
        for (number, level) in live.levels().iter().enumerate() {
            let keys: u64 = level.segments().iter().map(|s| s.meta.entries).sum();
            for segment in level.segments() {
                // Without a filter it waits to be checked, which is not this function's work.
                let Some(sidecar) = segment.sidecar.as_ref().filter(|s| s.is_verified()) else { continue };
                let share = if number == 0 { 1.0 } else { segment.meta.entries as f64 / keys.max(1) as f64 };
                let part = share * sidecar.expected_fpr();
                sum += part;
                let spec = self.choose(segment.meta.level, segment.meta.id);
                let fits = sidecar.kind().is_what(spec, sidecar.keys(), sidecar.lines());
                if !fits && may_change(segment) && worst.is_none_or(|(most, _)| part > most) {
                    worst = Some((part, segment));
                }
            }
        }
        let off = (sum - self.sum_fpr).abs() > TOLERANCE * self.sum_fpr;
        worst.filter(|_| off).map(|(_, segment)| segment)
    }

    /// The filter of one segment. File numbers times the golden ratio spread evenly over the unit interval, in any stretch of them.
    pub fn choose(&self, level: u8, id: FileId) -> FilterSpec {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let share = &self.shares[usize::from(level) % LEVELS];
        let place = id.0.wrapping_mul(GOLDEN) as f64 / 2f64.powi(64);
        if place < share.of_high { share.high } else { share.low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(levels: &[(u64, u32)]) -> Shape {
        let mut shape = Shape::default();
        shape.levels.iter_mut().zip(levels).for_each(|(to, &(keys, runs))| *to = LevelShape { keys, runs });
        shape
    }

    fn cost_of(spec: FilterSpec) -> (f64, f64) {
        let mut choices = hull().iter().flat_map(|(from, to)| [from, to]);
        let choice = choices.find(|choice| choice.spec == spec).unwrap();
        (choice.bits, choice.fpr)
    }

    /// Average bits per key and Σ FPR of a plan.
    fn outcome(plan: &FilterPlan, shape: &Shape) -> (f64, f64) {
        let (mut bits, mut keys, mut sum) = (0.0, 0.0, 0.0);
        for (share, level) in plan.shares.iter().zip(&shape.levels) {
            let ((low_bits, low_fpr), (high_bits, high_fpr)) = (cost_of(share.low), cost_of(share.high));
            bits += level.keys as f64 * (low_bits + share.of_high * (high_bits - low_bits));
            sum += f64::from(level.runs) * (low_fpr + share.of_high * (high_fpr - low_fpr));
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
        let shape = shape(&[(100_000, 1), (1_000_000, 1), (10_000_000, 1)]);
        let plan = FilterPolicy::bits_per_key(10.0).plan(&shape).unwrap();
        let bits: Vec<f64> = plan.shares[..3].iter().map(|share| cost_of(share.low).0).collect();
        assert!(bits[0] > bits[1] && bits[1] > bits[2], "{bits:?}");
        let (average, sum) = outcome(&plan, &shape);
        assert!((average - 10.0).abs() < 1e-9, "{average}");
        let even = 3.0 * 2f64.powi(-9);
        assert!(sum < 0.6 * even, "Σ FPR {sum}, the same bits everywhere give {even}");
    }

    #[test]
    fn a_plan_chooses_its_share_of_segments() {
        let one = shape(&[(1, 1)]);
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
            let shape = shape(&levels);
            prop_assume!(levels.iter().any(|(keys, _)| *keys > 0));
            let (average, sum) = outcome(&FilterPolicy::bits_per_key(bits).plan(&shape).unwrap(), &shape);
            prop_assert!((average - bits).abs() < 1e-6);
            // The dual: asking for that rate takes just as much memory.
            let (again, rate) = outcome(&FilterPolicy::target_fpr(sum).plan(&shape).unwrap(), &shape);
            prop_assert!(rate <= sum * (1.0 + 1e-9) && (again - bits).abs() < 1e-6, "{again} {rate}");
            // Moving memory from one level to another never helps: the same Σ FPR at less memory does not exist.
            let (less, _) = outcome(&FilterPolicy::target_fpr(sum * 1.01).plan(&shape).unwrap(), &shape);
            prop_assert!(less <= bits + 1e-6);
        }
    }
}
