//! The filter for small sets, against its definition.

use super::*;
use crate::{KeyHasher, test_length::sized};
use proptest::prelude::*;
use std::collections::HashSet;

fn value_of(hash: u64, keys: usize, rate_bits: u32) -> u128 {
    (u128::from(hash) * ((keys as u128) << rate_bits)) >> 64
}

proptest! {
    #[test]
    fn i1_answers_are_those_of_the_set_of_mapped_values(
        hashes in proptest::collection::hash_set(any::<u64>(), 0..400),
        others in proptest::collection::vec(any::<u64>(), 400),
        rate_bits in 1u32..=32,
    ) {
        let values: HashSet<u128> =
            hashes.iter().map(|&hash| value_of(hash, hashes.len(), rate_bits)).collect();
        let filter = SmallFilter::from_hashes(rate_bits, hashes.iter().copied(), 7).unwrap();
        for &hash in hashes.iter().chain(&others) {
            let expected = Verdict::of(values.contains(&value_of(hash, hashes.len(), rate_bits)));
            prop_assert_eq!(filter.contains_hash(hash), expected);
        }
        prop_assert!(hashes.iter().all(|&hash| filter.contains_hash(hash) == Verdict::Maybe));
        let rate = values.len() as f64 / (hashes.len().max(1) as f64 * 2f64.powi(rate_bits as i32));
        prop_assert_eq!((filter.keys(), filter.fpr()), (hashes.len() as u64, rate));
    }

    #[test]
    fn i1_close_hashes_that_share_values_are_all_members(
        start: u64, count in 1u64..300, step in 0u32..40, rate_bits in 1u32..=32,
    ) {
        let hashes: HashSet<u64> = (0..count).map(|i| start.wrapping_add(i << step)).collect();
        let filter = SmallFilter::from_hashes(rate_bits, hashes.iter().copied(), 7).unwrap();
        prop_assert!(hashes.iter().all(|&hash| filter.contains_hash(hash) == Verdict::Maybe));
        let coded = filter.to_coded();
        let decoded = SmallFilter::from_coded(rate_bits, 7.into(), filter.keys(), &coded);
        prop_assert_eq!(decoded, Some(filter));
    }
}

#[test]
fn the_measured_rate_is_the_exact_one_and_close_to_that_of_the_formula() {
    for (keys, rate_bits) in [(1, 4), (10, 8), (100, 1), (1000, 8), (20_000, 6), (65_536, 10)] {
        let filter = SmallFilter::build(rate_bits, (0..keys).map(|i| key(0, i)), 3).unwrap();
        let range = keys as f64 * f64::from(1 << rate_bits);
        let formula = 1.0 - (1.0 - 1.0 / range).powf(keys as f64);
        // Few keys share more or fewer values than the mean; 65,536 keep close to it.
        let off = (filter.fpr() / formula - 1.0).abs();
        assert!(off < if keys <= 100 { 0.1 } else { 0.02 }, "{keys} keys at {rate_bits}: {off}");
        assert!(filter.fpr() <= 0.5f64.powi(rate_bits as i32));
        let probes = (sized(10_000.0, 40_000.0) / formula) as u64;
        let maybes = (0..probes).filter(|&i| filter.contains(key(1, i)) == Verdict::Maybe).count();
        let off = maybes as f64 / probes as f64 / filter.fpr() - 1.0;
        assert!(off.abs() < 0.04, "{keys} keys at {rate_bits}: {off}"); // Four standard deviations.
    }
}

#[test]
fn i1_both_hashes_serve_and_a_key_added_twice_counts_once() {
    for hasher in [KeyHasher::from(5), KeyHasher::siphash13([5, 6])] {
        let keys: Vec<_> = (0..1000).chain(0..500).map(|i| key(0, i)).collect();
        let filter = SmallFilter::build(8, &keys, hasher).unwrap();
        assert!(keys.iter().all(|key| filter.contains(key) == Verdict::Maybe));
        assert_eq!((filter.keys(), filter.hasher()), (1000, hasher));
        assert_eq!(filter, SmallFilter::build(8, &keys[..1000], hasher).unwrap());
    }
}

#[test]
fn an_empty_filter_denies_everything() {
    let filter = SmallFilter::build(8, [[0; 0]; 0], 1).unwrap();
    assert_eq!((filter.keys(), filter.fpr(), filter.coded_bytes()), (0, 0.0, 0));
    assert!((0..1000).all(|i| filter.contains(key(0, i)) == Verdict::Absent));
}

/// Too many keys and impossible rates are refused. The error gives the limit and says what to build instead.
#[test]
fn too_many_keys_and_impossible_rates_are_refused_with_an_alternative() {
    let refused = |rate_bits, keys: u64| {
        SmallFilter::from_hashes(rate_bits, (0..keys).map(|i| i << 40), 1).unwrap_err().to_string()
    };
    assert!(SmallFilter::from_hashes(1, (0..65_536).map(|i| i << 40), 1).is_ok());
    let why = refused(8, 65_537);
    assert!(why.contains("65536 keys") && why.contains("parity filter"), "{why}");
    for rate_bits in [0, 33, u32::MAX] {
        assert!(refused(rate_bits, 10).contains("2^-1 to 2^-32"));
    }
    // It stops at the limit instead of collecting them all.
    assert!(SmallFilter::from_hashes(8, 0.., 1).is_err());
}

#[test]
fn a_small_filter_takes_no_new_key() {
    let mut filter = AnyFilter::Small(SmallFilter::build(8, [key(0, 0)], 1).unwrap());
    assert!(matches!(filter.insert(key(0, 1)), Err(Error::InvalidArgument(why)) if why.contains("again")));
    assert!(filter.insert_many(&[key(0, 1)]).is_err() && filter.remove(key(0, 0)).is_err());
    assert_eq!(filter.contains_many(&[key(0, 0), key(0, 1)]), [Verdict::Maybe, Verdict::Absent]);
}
