//! Measured false-positive rates are the predicted ones.

use super::*;
use crate::test_length::sized;

fn measured(probes: u64, contains: impl Fn([u8; 16]) -> Verdict) -> f64 {
    (0..probes).filter(|&i| contains(key(1, i)) == Verdict::Maybe).count() as f64 / probes as f64
}

/// Probes for about 1500 or 4000 false positives: three standard deviations are under 8 or 5 %.
fn probes(fpr: f64) -> u64 {
    (sized(1500.0, 4000.0) / fpr).min(40_000_000.0) as u64
}

fn assert_near(measured: f64, predicted: f64, case: &str) {
    assert!((measured / predicted - 1.0).abs() < 0.1, "{case}: {measured} measured, {predicted} predicted");
}

#[test]
fn a_full_bloom_filter_has_the_rate_of_the_formula_with_both_hashes() {
    for hash in HASHES {
        let all = [(1000, 0.1), (1000, 0.01), (50_000, 0.01), (10_000, 0.001), (3000, 0.0002)];
        for (keys, fpr) in all.into_iter().take(sized(4, 5)) {
            let plan = plan(keys, fpr, hash);
            let filter = bloom_of(plan, 0..keys);
            let case = format!("{keys} keys at {fpr}, {}", hash.name());
            // The predicted rate is the mean over all key sets of this size; what can be measured depends on
            // how full this one is.
            assert_near(filter.fpr(), plan.shape.fpr(keys), &case);
            assert_near(measured(probes(fpr), |key| filter.contains(key)), filter.fpr(), &case);
        }
    }
}

/// From 6 to 16 bits per key, the rate is within three per cent of the formula.
#[test]
fn from_6_to_16_bits_per_key_the_rate_is_within_3_percent_of_the_formula() {
    for bits in [6.0, 10.0, 16.0] {
        let keys = 100_000;
        let shape = Shape::with_bits_per_key(keys, bits).unwrap();
        let predicted = shape.fpr(keys);
        let filter = bloom_of(Plan { shape, hash: HashFunction::Xxh3(3), fpr: 1.1 * predicted }, 0..keys);
        // 10,000 or 20,000 false positives: one standard deviation is 1 or 0.7 % of the measurement.
        let off = measured((sized(10_000.0, 20_000.0) / predicted) as u64, |key| filter.contains(key))
            / predicted
            - 1.0;
        println!("{bits} bits: {:+.2} % off", 100.0 * off);
        assert!(off.abs() < 0.03, "{bits} bits: {off}");
    }
}

#[test]
fn a_small_filter_of_a_very_low_rate_is_not_spoilt_by_double_hashing() {
    // Without the third term of the positions, 1000 keys at 1e-6 let through 46 times as many as predicted.
    let plan = plan(1000, 1e-6, HashFunction::default());
    let filters: Vec<Bloom> =
        (0..8).map(|seed| bloom_of(Plan { hash: HashFunction::Xxh3(seed), ..plan }, 0..1000)).collect();
    let probes = sized(3_000_000, 12_000_000);
    let rates = filters.iter().map(|filter| measured(probes, |key| filter.contains(key)));
    let mean = rates.sum::<f64>() / filters.len() as f64;
    // About 24 or 96 expected: three standard deviations are 61 or 31 %.
    assert!(mean < 1.35e-6, "{mean}");
}

#[test]
fn counting_and_blocked_filters_have_their_predicted_rates() {
    let plan = plan(20_000, 0.01, HashFunction::Xxh3(1));
    let mut counting = CountingBloom::with_plan(plan).unwrap();
    (0..20_000).for_each(|i| assert!(counting.insert(key(0, i)).is_ok()));
    assert_near(measured(400_000, |key| counting.contains(key)), plan.shape.fpr(20_000), "counting");

    let mut blocked = LineFilter::empty_blocked(100_000, 10.0, 1).unwrap();
    (0..100_000).for_each(|i| assert!(blocked.insert(key(0, i)).is_ok()));
    assert_near(measured(400_000, |key| blocked.contains(key)), blocked.fpr(), "blocked");
}

#[test]
fn a_noisy_filter_has_the_product_of_its_parts_rates() {
    let mut noisy = NoisyBloom::new(10_000, 5, 0.25, 100).unwrap();
    (0..10_000).for_each(|i| assert!(noisy.insert(key(0, i)).is_ok()));
    assert_near(noisy.fpr(), 0.25f64.powi(5), "parts");
    assert_near(measured(4_000_000, |key| noisy.contains(key)), noisy.fpr(), "all");
}

/// A folded filter has the rate of half the bits, and it is the smallest one that keeps the requested rate.
#[test]
fn a_folded_filter_is_the_smallest_that_keeps_the_rate_asked_for() {
    let plan = plan(200_000, 0.01, HashFunction::Xxh3(1));
    let filter = bloom_of(plan, 0..10_000);
    let folded = filter.folded_to(0.01).unwrap();
    assert_eq!(folded.plan().shape.bits() * 16, plan.shape.bits());
    let predicted = folded.plan().shape.fpr(10_000);
    assert!(predicted <= 0.01 && folded.halved().unwrap().plan().shape.fpr(10_000) > 0.01);
    assert_near(measured(probes(predicted), |key| folded.contains(key)), predicted, "folded");
}
