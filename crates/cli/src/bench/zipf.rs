//! Zipfian ranks, drawn before the clock starts.

use super::keys::Rng;

/// YCSB's constant.
const THETA: f64 = 0.99;
/// Ranks drawn; longer workloads reuse them.
const DRAWS: u64 = 1 << 22;

/// Ranks from 0 (the most popular) to below `n`.
///
/// YCSB's generator: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994.
pub struct Zipf {
    ranks: Vec<u32>,
}

impl Zipf {
    /// Draws ranks for `ops` operations over `n` items (at most `u32::MAX`).
    pub fn new(n: u64, ops: u64, seed: u64) -> Self {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let (zeta_n, zeta_2) = (zeta(n), zeta(2));
        let alpha = 1.0 / (1.0 - THETA);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - THETA)) / (1.0 - zeta_2 / zeta_n);
        let mut rng = Rng::new(seed);
        let mut draw = || {
            let u = rng.unit();
            let rank = match u * zeta_n {
                uz if uz < 1.0 => 0.0,
                uz if uz < zeta_2 => 1.0,
                _ => n as f64 * (eta * u - eta + 1.0).powf(alpha),
            };
            (rank as u32).min((n - 1) as u32)
        };
        Zipf { ranks: (0..ops.clamp(1, DRAWS)).map(|_| draw()).collect() }
    }

    /// The rank of operation `i`.
    #[inline]
    pub fn rank(&self, i: u64) -> u64 {
        let at = i as usize % self.ranks.len();
        self.ranks.get(at).copied().map_or(0, u64::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_ranks_come_as_often_as_the_formula_says() {
        let n = 1000;
        let zipf = Zipf::new(n, 200_000, 1);
        let zeta: f64 = (1..=n).map(|i| (i as f64).powf(-THETA)).sum();
        for rank in [0, 1] {
            let share = zipf.ranks.iter().filter(|&&r| r == rank).count() as f64 / 200_000.0;
            let expected = f64::from(rank + 1).powf(-THETA) / zeta;
            assert!((share / expected - 1.0).abs() < 0.05, "rank {rank}: {share} instead of {expected}");
        }
        assert!(zipf.ranks.iter().all(|&r| u64::from(r) < n));
        assert!(zipf.ranks.iter().any(|&r| r > 900));
    }

    #[test]
    fn one_item_is_always_drawn() {
        assert_eq!(Zipf::new(1, 10, 1).rank(5), 0);
    }
}
