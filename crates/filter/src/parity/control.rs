//! The control byte of a line: which of its keys it bumps, and how many checks across lanes the others get.
//!
//! | byte | threshold | quota, in sixteenths of a check |
//! |---|---|---|
//! | 0 to 63 | 0 | the byte |
//! | 64 + 4 (t − 1) + s | t, 1 to 48 | s × the step of the layout |
//!
//! Keys whose rank is below the threshold are bumped. The others have as many checks as the quota has whole
//! ones, and keys whose place is in the last q sixteenths of the line have one more, for a remainder of q.

use super::equation::MAX_CHECKS;
use super::layout::Layout;

/// The lowest byte with a threshold.
const BUMPS: u32 = 64;
/// Quotas per threshold.
const STEPS: u32 = 4;
/// The threshold that bumps every key. Ranks are lower.
pub(super) const BUMP_ALL: u32 = 48;
/// Sixteenths per check.
const UNIT: u32 = 16;

const _: () = assert!(BUMPS + STEPS * BUMP_ALL == 256 && (BUMPS - 1).div_ceil(UNIT) as usize == MAX_CHECKS);

/// The rank of a key: the place in steps of 1 / `RANKS`, up to the last rank, which about half of the places
/// share. Fewer than one line in ten thousand needs a threshold there.
#[inline(always)]
pub(super) fn rank<L: Layout>(place: u64) -> u32 {
    let scaled = (place >> 32) * u64::from(L::RANKS);
    ((scaled >> 32) as u32).min(BUMP_ALL - 1)
}

/// The share of places whose rank is below a threshold: the inverse of [`rank`].
pub(super) fn share_bumped<L: Layout>(threshold: u32) -> f64 {
    if threshold == BUMP_ALL { 1.0 } else { f64::from(threshold) / f64::from(L::RANKS) }
}

#[inline(always)]
pub(super) fn is_bumped<L: Layout>(control: u32, place: u64) -> bool {
    control >= BUMPS + STEPS * rank::<L>(place)
}

/// What a control byte means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Control {
    pub threshold: u32,
    /// In sixteenths of a check.
    pub quota: u32,
}

impl Control {
    #[inline(always)]
    pub fn decode<L: Layout>(control: u32) -> Self {
        match control.checked_sub(BUMPS) {
            None => Control { threshold: 0, quota: control },
            Some(bumps) => Control { threshold: bumps / STEPS + 1, quota: bumps % STEPS * L::QUOTA_STEP },
        }
    }

    /// The byte with this threshold and the largest quota that is not above `quota`.
    #[inline(always)]
    pub fn encode<L: Layout>(threshold: u32, quota: u32) -> u32 {
        match threshold {
            0 => quota.min(BUMPS - 1),
            _ => BUMPS + STEPS * (threshold - 1) + (quota / L::QUOTA_STEP).min(STEPS - 1),
        }
    }

    /// The number of checks of a key that is not bumped.
    #[inline(always)]
    pub fn checks(self, place: u64) -> usize {
        (self.quota / UNIT + u32::from(in_remainder(self.quota, place))) as usize
    }

    /// The false-positive rate of the line, and the share of probes that go on to the next level.
    pub fn rates<L: Layout>(self) -> (f64, f64) {
        let bumped = share_bumped::<L>(self.threshold);
        let kept = 1.0 - bumped;
        let more = (f64::from(self.quota % UNIT) / f64::from(UNIT)).min(kept);
        let rate = 1.0 / (1u64 << (L::LANES as u32 + self.quota / UNIT)) as f64;
        ((kept - more + more / 2.0) * rate, bumped)
    }
}

/// Whether a key has one check more than the whole number in the quota.
#[inline(always)]
pub(super) fn in_remainder(quota: u32, place: u64) -> bool {
    (place >> 60) as u32 + quota % UNIT >= UNIT
}

/// The largest quota for which these keys have at most `checks` checks. Their places are in descending order.
#[inline(always)]
pub(super) fn largest_quota(checks: usize, keys: usize, place: impl Fn(usize) -> u64) -> u32 {
    match checks.checked_div(keys) {
        None => UNIT * MAX_CHECKS as u32,
        // The first key for whose additional check there is no room bounds the remainder.
        Some(whole) => UNIT * whole as u32 + UNIT - 1 - (place(checks % keys) >> 60) as u32,
    }
}
