//! A token bucket: it fills at a rate, and compactions take the bytes that they read and write.

use crate::sync::Instant;
use std::time::Duration;

/// Units per byte, so that nothing is lost to rounding: at one byte per second, one comes each nanosecond.
const UNITS: i128 = 1_000_000_000;
/// What a full bucket holds, as a part of a second.
const BURST_PER_SECOND: i128 = 10;

/// Holds the bytes that may be taken now. Whoever takes more leaves a debt, and waits until it is paid.
#[derive(Debug)]
pub(crate) struct RateBucket {
    /// In bytes per second; 0 if unlimited.
    rate: i128,
    units: i128,
    filled: Instant,
}

impl RateBucket {
    /// A full bucket.
    pub fn new(bytes_per_second: u64, now: Instant) -> Self {
        let rate = i128::from(bytes_per_second);
        RateBucket { rate, units: burst(rate), filled: now }
    }

    /// Fills it at another rate from now on. A debt stays, unless one of the rates is unlimited.
    pub fn set_rate(&mut self, bytes_per_second: u64, now: Instant) {
        self.fill(now);
        let rate = i128::from(bytes_per_second);
        let is_fresh = self.rate == 0 || rate == 0;
        self.units = if is_fresh { burst(rate) } else { self.units.min(burst(rate)) };
        self.rate = rate;
    }

    pub fn take(&mut self, bytes: u64, now: Instant) {
        self.fill(now);
        if self.rate > 0 {
            self.units -= i128::from(bytes) * UNITS;
        }
    }

    /// How long until there is no debt.
    pub fn until_paid(&mut self, now: Instant) -> Duration {
        self.fill(now);
        if self.rate == 0 || self.units >= 0 {
            return Duration::ZERO;
        }
        let nanos = (-self.units + self.rate - 1) / self.rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn fill(&mut self, now: Instant) {
        let nanos = now.saturating_duration_since(self.filled).as_nanos();
        let added = i128::try_from(nanos).unwrap_or(0).saturating_mul(self.rate);
        self.units = self.units.saturating_add(added).min(burst(self.rate));
        self.filled = now;
    }
}

fn burst(rate: i128) -> i128 {
    rate * UNITS / BURST_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Take(u64),
        Pass(u64),
    }

    proptest! {
        /// Whoever waits until its debt is paid takes no more than the rate, and the burst once.
        #[test]
        fn bytes_taken_in_any_time_fit_the_rate_and_one_burst(
            rate in 1u64..1 << 40,
            steps in prop::collection::vec(prop_oneof![
                (0u64..1 << 32).prop_map(Step::Take), (0u64..2_000_000_000).prop_map(Step::Pass),
            ], 1..50),
        ) {
            let start = Instant::now();
            let (mut now, mut taken) = (start, 0u128);
            let mut bucket = RateBucket::new(rate, start);
            for step in steps {
                match step {
                    Step::Pass(nanos) => now += Duration::from_nanos(nanos),
                    Step::Take(bytes) => {
                        bucket.take(bytes, now);
                        let wait = bucket.until_paid(now);
                        now += wait;
                        prop_assert_eq!(bucket.until_paid(now), Duration::ZERO);
                        taken += u128::from(bytes);
                        let nanos = now.saturating_duration_since(start).as_nanos();
                        let allowed = u128::from(rate) * (nanos + 100_000_000) / 1_000_000_000;
                        prop_assert!(taken <= allowed + 1, "{} of {}", taken, allowed);
                        // And it wastes none: it waits only in debt.
                        prop_assert!(wait.is_zero() || taken + 1 >= u128::from(rate) * 100_000_000 / 1_000_000_000);
                    }
                }
            }
        }
    }

    #[test]
    fn a_higher_rate_pays_a_debt_sooner_and_no_limit_forgives_it() {
        let now = Instant::now();
        let mut bucket = RateBucket::new(1000, now);
        bucket.take(2100, now);
        assert_eq!(bucket.until_paid(now), Duration::from_secs(2));
        bucket.set_rate(4000, now);
        assert_eq!(bucket.until_paid(now), Duration::from_millis(500));
        bucket.set_rate(0, now);
        assert_eq!(bucket.until_paid(now), Duration::ZERO);
        bucket.take(u64::MAX, now);
        bucket.set_rate(1000, now);
        assert_eq!(bucket.until_paid(now), Duration::ZERO, "what was taken without a limit does not count");
        bucket.take(100, now);
        assert_eq!(bucket.until_paid(now), Duration::ZERO, "a full bucket");
        bucket.take(1, now);
        assert_eq!(bucket.until_paid(now), Duration::from_millis(1));
    }
}
