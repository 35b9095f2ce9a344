//! The shape of stores whose filters are compared: the same sorted runs in each. After a load, RocksDB leaves
//! two to five of them, depending on when its compactions ran. Each sorted run costs one more probe, which
//! would outweigh the differences of the filters.

use crate::format::percent;
use std::ops::Range;

/// Sorted runs, each over the whole range of keys.
pub const RUNS: u64 = 3;
/// Shares of the sorted runs, the last level first, as in a tree with RocksDB's tenfold levels.
const SHARES: [u64; RUNS as usize] = [100, 10, 1];

/// The indexes of the keys of each sorted run.
pub fn runs(num: u64) -> [Range<u64>; RUNS as usize] {
    let all: u64 = SHARES.iter().sum();
    let mut shares = 0;
    SHARES.map(|share| {
        let first = (u128::from(num) * u128::from(shares) / u128::from(all)) as u64;
        shares += share;
        first..(u128::from(num) * u128::from(shares) / u128::from(all)) as u64
    })
}

/// The shape, in words.
pub fn describe(num: u64) -> String {
    let [last, upper, top] = runs(num).map(|keys| percent((keys.end - keys.start) as f64 / num as f64));
    format!(
        "lookups in stores of the same shape: level 6 has {last} of the keys, two runs of level 0 have {upper} and {top}; no automatic compactions"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_have_all_keys_once_and_grow_tenfold() {
        assert_eq!(runs(111), [0..100, 100..110, 110..111]);
        for num in [1_000, 12_345, 10_000_000] {
            let [last, upper, top] = runs(num);
            assert_eq!((last.start, last.end, upper.end, top.end), (0, upper.start, top.start, num));
            assert!(top.end - top.start >= num / 112);
        }
    }
}
