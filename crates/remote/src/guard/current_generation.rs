//! The generation in use, and its age.

use crate::find_generation::Found;
use crate::generation::Generation;
use crate::writer::CLOCK_TOLERANCE;
use sidebloom::guard::Guard;
use std::time::{Duration, SystemTime};

/// The generation that answers lookups.
pub struct Current {
    pub guard: Guard,
    pub generation: Generation,
    as_of: SystemTime,
    /// When it was fetched, by this machine's clock; `None` if that clock differs too much from the clocks of
    /// the publisher and the bucket.
    seen: Option<SystemTime>,
}

impl Current {
    pub fn new(guard: Guard, Found { generation, written }: Found) -> Self {
        let (as_of, now) = (generation.as_of(), SystemTime::now());
        let is_ahead =
            |time: SystemTime, of: SystemTime| time.duration_since(of).is_ok_and(|by| by > CLOCK_TOLERANCE);
        // A publisher ahead of the bucket, or a reader behind it, makes a generation look younger than it is.
        let agree = !is_ahead(as_of, written) && !is_ahead(written, now);
        Current { guard, generation, as_of, seen: agree.then_some(now) }
    }

    /// When it was taken, by the publisher's clock.
    pub fn as_of(&self) -> SystemTime {
        self.as_of
    }

    /// Its age; `None` if the clocks differ too much to tell.
    #[inline]
    pub fn staleness(&self) -> Option<Duration> {
        let (now, seen) = (SystemTime::now(), self.seen?);
        // Every lookup asks, so this reads one clock, but not the monotonic one, which stops during sleep.
        let was_set_back = seen.duration_since(now).is_ok_and(|by| by > CLOCK_TOLERANCE);
        (!was_set_back).then(|| now.duration_since(self.as_of).unwrap_or_default())
    }

    /// Whether it may answer.
    #[inline]
    pub fn is_within(&self, bound: Option<Duration>) -> bool {
        bound.is_none_or(|bound| self.staleness().is_some_and(|age| age <= bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generation::{millis, tests::numbered};

    /// A generation taken and written to the bucket this many seconds ago.
    fn current(taken: i64, written: i64) -> Current {
        let ago = |seconds: i64| match seconds {
            0.. => SystemTime::now() - Duration::from_secs(seconds.unsigned_abs()),
            _ => SystemTime::now() + Duration::from_secs(seconds.unsigned_abs()),
        };
        let generation = Generation { as_of_ms: millis(ago(taken)), ..numbered(1) };
        let dir = tempfile::tempdir().unwrap();
        let guard = Guard::build(dir.path().join("guard"), ["x"]).unwrap();
        Current::new(guard, Found { generation, written: ago(written) })
    }

    #[test]
    fn the_age_is_that_of_the_generation_and_wrong_clocks_have_none() {
        let bound = |seconds| Some(Duration::from_secs(seconds));
        let state = current(100, 40);
        assert!(state.staleness().unwrap() >= Duration::from_secs(100), "the upload took a minute");
        assert!(!state.is_within(bound(90)) && state.is_within(bound(110)) && state.is_within(None));
        assert!(current(-10, 0).is_within(bound(1)), "within the tolerance");
        let mut state = current(0, 0);
        state.seen = Some(SystemTime::now() + Duration::from_secs(100));
        assert_eq!(state.staleness(), None, "this machine's clock was set back");
        for (taken, written, who) in [(0, 100, "publisher is ahead"), (-100, -100, "this machine is behind")]
        {
            let state = current(taken, written);
            assert_eq!(state.staleness(), None, "the {who}");
            assert!(!state.is_within(bound(1000)) && state.is_within(None), "the {who}");
        }
    }
}
