//! Sizing.

use super::super::shape::*;
use super::*;

#[test]
fn textbook_sizes_come_out() {
    // 1 %: 9.585 bits per key and k = 7; 0.1 %: 14.378 and 10.
    assert_eq!(optimal_bits(1_000_000, 0.01).unwrap(), 9_585_059);
    assert_eq!(optimal_bits(1_000_000, 0.001).unwrap(), 14_377_588);
    assert_eq!([9_585_059, 14_377_588].map(|bits| optimal_hashes(bits, 1_000_000)), [7, 10]);
    let shape = Shape::for_keys(1_000_000, 0.01).unwrap();
    assert_eq!(shape.hashes(), 7);
    assert!((1_000_000..1_020_000).contains(&shape.capacity(0.01)));
}

/// A filter for `n` keys takes `n` keys, also where the best number of positions is far from a whole one.
#[test]
fn a_shape_for_so_many_keys_has_room_for_them_at_its_rate() {
    for fpr in [0.999, 0.9, 0.7, 0.3, 0.1, 0.02368, 0.01, 1e-3, 1e-6, 1e-12, MIN_FPR] {
        for keys in (1..2000).chain((1..200).map(|i| i * 7919)) {
            let shape = Shape::for_keys(keys, fpr).unwrap();
            let (capacity, hashes) = (shape.capacity(fpr), shape.hashes());
            assert!(capacity >= keys, "{keys} at {fpr}: {capacity} with {hashes} positions");
        }
    }
}

/// Shapes are whole lines, hardly larger than requested, and fold to 128 lines or fewer.
#[test]
fn shapes_are_whole_lines_hardly_larger_than_asked_for_and_fold() {
    for bits in [1, 511, 512, 513, 65_537, 9_585_059, (1 << 33) + 1, MAX_BITS] {
        let shape = Shape::new(bits, 7).unwrap();
        assert!(shape.bits() >= bits && shape.bits() as f64 <= bits as f64 * (1.0 + 1.0 / 64.0) + 512.0);
        let mut least = shape;
        while let Some(half) = least.halved() {
            least = half;
        }
        assert!(least.bits() <= 128 * 512, "{bits} bits fold to {}", least.bits());
    }
}

/// Distinct bits set by all draws of the members, one draw at a time; then the k draws of the probe.
fn fpr_by_stepping(keys: u64, bits: usize, k: u32) -> f64 {
    let mut set = vec![0.0; bits + 1];
    set[0] = 1.0;
    for _ in 0..keys * u64::from(k) {
        for x in (1..=bits).rev() {
            set[x] = set[x] * x as f64 / bits as f64 + set[x - 1] * (bits - x + 1) as f64 / bits as f64;
        }
        set[0] = 0.0;
    }
    set.iter().enumerate().map(|(x, p)| p * (x as f64 / bits as f64).powi(k as i32)).sum()
}

#[test]
fn exact_rate_is_the_distribution_s_and_the_approximation_lies_below_it() {
    for (keys, bits, k) in [(1, 8, 1), (1, 8, 3), (10, 64, 4), (50, 512, 7), (20, 512, 18), (100, 512, 30)] {
        let (exact, stepped) = (exact_fpr(keys, bits as u64, k), fpr_by_stepping(keys, bits, k));
        assert!((exact / stepped - 1.0).abs() < 1e-9, "{keys} in {bits}, k {k}: {exact}, {stepped}");
        assert!(approximate_fpr(keys, bits as u64, k) <= exact);
    }
    let (exact, usual) = (exact_fpr(1_000_000, 28_755_176, 20), approximate_fpr(1_000_000, 28_755_176, 20));
    assert!((exact / usual - 1.0).abs() < 1e-4 && (exact / 1e-6 - 1.0).abs() < 0.01, "{exact} {usual}");
    assert_eq!((exact_fpr(0, 512, 7), approximate_fpr(0, 512, 7)), (0.0, 0.0));
}

#[test]
fn absurd_sizes_and_rates_are_refused_by_name_before_any_allocation() {
    let refused = |shape: crate::Result<Shape>| matches!(shape, Err(Error::InvalidArgument(_)));
    for fpr in [0.0, 1.0, -0.1, 2.0, 1e-300, f64::NAN, f64::INFINITY] {
        assert!(refused(Shape::for_keys(1000, fpr)), "{fpr}");
        assert!(matches!(Bloom::new(1000, fpr), Err(Error::InvalidArgument(_))));
        assert!(matches!(ScalableBloom::new(1000, fpr), Err(Error::InvalidArgument(_))));
    }
    assert!(refused(Shape::for_keys(0, 0.01)));
    assert!(refused(Shape::with_bits_per_key(0, 10.0)));
    for keys in [u64::MAX, 1 << 50] {
        for shape in [Shape::for_keys(keys, 0.01), Shape::with_bits_per_key(keys, 10.0)] {
            assert!(matches!(shape, Err(Error::TooManyKeys { keys: k, .. }) if k == keys), "{keys}");
        }
    }
    for bits_per_key in [0.0, -1.0, f64::NAN, 1e9] {
        assert!(refused(Shape::with_bits_per_key(1, bits_per_key)), "{bits_per_key}");
    }
    for (bits, hashes) in [(0, 1), (1, 0), (1, 65), (MAX_BITS + 1, 1)] {
        assert!(refused(Shape::new(bits, hashes)), "{bits} {hashes}");
    }
}
