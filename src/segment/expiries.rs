//! When the rows of a segment expire: facts that say how much of it has expired without reading it.

use crate::key::Time;
use std::time::SystemTime;

/// Moments of the sample that the quartiles come from. Their error is then about a sixteenth of the rows.
const SAMPLE_MAX: usize = 128;

/// When the rows of a segment expire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expiries {
    /// Number of puts that expire.
    pub count: u64,
    /// When the first of them expires, and about when a quarter, half and three quarters of them have, and
    /// when the last does, in milliseconds since 1970; 0 without any.
    pub quartiles: [u64; 5],
}

impl Expiries {
    /// Whether they do not contradict each other.
    pub fn is_sound(&self) -> bool {
        let [first, .., last] = self.quartiles;
        let is_some = self.count > 0;
        self.quartiles.is_sorted()
            && (first > 0) == is_some
            && (last > 0) == is_some
            && last <= Time::MAX.millis()
    }

    /// When the first row expires, if one does.
    pub fn first(&self) -> Option<Time> {
        let [first, ..] = self.quartiles;
        (self.count > 0).then(|| Time::of_millis(first))
    }

    /// When the last row expires, if one does.
    pub fn last(&self) -> Option<Time> {
        let [.., last] = self.quartiles;
        (self.count > 0).then(|| Time::of_millis(last))
    }

    /// The first of the moments above that is after `now`; `None` if none is.
    pub fn next_after(&self, now: Time) -> Option<SystemTime> {
        self.quartiles.iter().map(|&millis| Time::of_millis(millis)).find(|at| *at > now).map(Time::to_system)
    }

    /// About how many rows have expired at a moment, from 0 to all that expire.
    pub fn expired_at(&self, now: Time) -> u64 {
        let now = now.millis();
        let quarters = self.quartiles.windows(2).map(|quarter| match *quarter {
            [from, _] if now < from => 0.0,
            [from, to] if now < to => (now - from) as f64 / (to - from) as f64,
            _ => 1.0,
        });
        (quarters.sum::<f64>() / 4.0 * self.count as f64) as u64
    }

    /// About when so many rows have expired; `None` if fewer expire at all.
    pub fn when(&self, rows: u64) -> Option<Time> {
        if rows > self.count || self.count == 0 {
            return None;
        }
        let quarters = 4.0 * rows as f64 / self.count as f64;
        let at = (quarters as usize).min(3);
        let (from, to) = (*self.quartiles.get(at)?, *self.quartiles.get(at + 1)?);
        Some(Time::of_millis(from + ((quarters - at as f64) * (to - from) as f64) as u64))
    }
}

/// Counts the moments of rows, in the order of a segment. The same rows in the same order give the same
/// facts.
#[derive(Debug, Clone, Default)]
pub struct ExpiriesBuilder {
    count: u64,
    first: u64,
    last: u64,
    /// The moment of every row whose number is a multiple of 2^`doublings`.
    sample: Vec<u64>,
    doublings: u32,
}

impl ExpiriesBuilder {
    /// Counts a row.
    pub fn add(&mut self, moment: Time) {
        let millis = moment.millis();
        self.first = if self.count == 0 { millis } else { self.first.min(millis) };
        self.last = self.last.max(millis);
        if self.count.trailing_zeros() >= self.doublings {
            self.sample.push(millis);
        }
        self.count += 1;
        if self.sample.len() == SAMPLE_MAX {
            self.sample = self.sample.iter().copied().step_by(2).collect();
            self.doublings += 1;
        }
    }

    /// The facts.
    pub fn finish(mut self) -> Expiries {
        self.sample.sort_unstable();
        let part =
            |quarters: usize| self.sample.get(self.sample.len() * quarters / 4).copied().unwrap_or(self.last);
        let quartiles = [self.first, part(1), part(2), part(3), self.last];
        Expiries { count: self.count, quartiles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(moments: impl Iterator<Item = u64>) -> Expiries {
        let mut builder = ExpiriesBuilder::default();
        moments.for_each(|millis| builder.add(Time::of_millis(millis)));
        builder.finish()
    }

    #[test]
    fn quartiles_tell_how_many_rows_have_expired() {
        // In no order that has to do with the moments.
        let scattered = |n: u64| (0..n).map(move |i| 1000 + i * 7919 % n);
        for n in [1, 2, 5, 100, 127, 128, 10_000, 1_000_000] {
            let found = of(scattered(n));
            assert!(found.is_sound() && found.count == n);
            assert_eq!(
                (found.first(), found.last()),
                (Some(Time::of_millis(1000)), Some(Time::of_millis(999 + n)))
            );
            assert_eq!(
                (found.expired_at(Time::of_millis(999)), found.expired_at(Time::of_millis(999 + n))),
                (0, n)
            );
            for share in [1, 3, 5, 7, 8] {
                let (rows, off) = (n * share / 8, n / 8 + 1);
                let when = found.when(rows).unwrap().millis() - 1000;
                assert!(when.abs_diff(rows) <= off, "{n}, {share}: {when}");
                assert!(found.expired_at(Time::of_millis(1000 + rows)).abs_diff(rows) <= off, "{n}, {share}");
            }
            assert_eq!(found.when(n + 1), None);
        }
        assert_eq!(of(std::iter::empty()), Expiries::default());
        assert!(Expiries::default().is_sound() && Expiries::default().when(0).is_none());
    }

    #[test]
    fn equal_moments_expire_at_once() {
        let found = of(std::iter::repeat_n(5, 1000));
        assert_eq!((found.expired_at(Time::of_millis(4)), found.expired_at(Time::of_millis(5))), (0, 1000));
        assert_eq!(found.when(1), Some(Time::of_millis(5)));
    }
}
