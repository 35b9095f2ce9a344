//! The rotating filter against a map of the times at which keys were last seen.

use super::*;
use crate::test_length::sized;
use std::collections::HashMap;

fn rotating(window_ms: u64, fpr: f64, bytes_max: u64) -> RotatingBloom {
    let hash = HashFunction::SipHash13([3, 4]);
    RotatingBloom::with_rotation(Rotation { window_ms, fpr, bytes_max, hash }).unwrap()
}

/// A step of a random clock: mostly forwards a little, sometimes beyond the window or backwards.
fn step(rng: &mut fastrand::Rng, time: u64, window: u64) -> u64 {
    match rng.u32(..100) {
        0 => time + rng.u64(..3 * window),
        1 => time.saturating_sub(rng.u64(..2 * window)),
        2..50 => time,
        _ => time + rng.u64(..=window / 40),
    }
}

/// False positives play no part at this rate: what is new and what is not is exact.
#[test]
fn i1_a_key_is_forgotten_between_the_window_and_13_twelfths_of_it() {
    for seed in 0..sized(60, 600) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let window = *rng.choice(&[1, 5, 12, 13, 100, 999, 1000, 3_600_000, 86_400_000]).unwrap();
        let mut filter = rotating(window, 1e-10, 1 << 40);
        let mut last_times: HashMap<u64, u64> = HashMap::new();
        let (mut time, mut latest) = (rng.u64(..2 * window), 0);
        for _ in 0..2000 {
            time = step(&mut rng, time, window);
            latest = time.max(latest);
            let i = rng.u64(..60);
            let last = last_times.insert(i, latest);
            let age = last.map(|last| latest - last);
            let new = filter.insert_new(key(0, i), time).unwrap();
            match age {
                Some(age) if age <= window => assert!(!new, "seed {seed}: {i} is {age} of {window} old"),
                Some(age) if 12 * age < 13 * window => {}
                _ => assert!(new, "seed {seed}: {i} is {age:?} of {window} old"),
            }
            assert_eq!(filter.contains(key(0, i)), Verdict::Maybe);
            assert!(filter.filters() <= 13);
        }
    }
}

/// A key that is seen again is remembered from then on, although an older sub-filter had it already.
#[test]
fn i1_a_key_that_is_seen_again_and_again_is_never_new_again() {
    let mut filter = rotating(1200, 0.01, 1 << 20);
    let news = (0..200).filter(|i| filter.insert_new("often", i * 700).unwrap()).count();
    assert_eq!(news, 1);
}

#[test]
fn i1_a_late_key_is_remembered_as_long_as_one_that_came_in_time() {
    let mut filter = rotating(1200, 1e-6, 1 << 20);
    assert!(filter.insert_new("in time", 10_000).unwrap() && filter.insert_new("late", 5).unwrap());
    assert!(!filter.insert_new("late", 11_200).unwrap());
    assert!(filter.insert_new("late", 12_600).unwrap());
    // At the end of time.
    assert!(filter.insert_new("last", u64::MAX).unwrap() && !filter.insert_new("last", 0).unwrap());
}

/// Bursts take several layers, and each bucket is far from what the one before it was like.
#[test]
fn the_rate_is_the_computed_one_and_below_the_one_asked_for() {
    for (seed, fpr) in [(1, 0.2), (2, 0.03), (3, 0.01)] {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut filter = rotating(1200, fpr, 1 << 30);
        let (mut next, mut false_seen, mut expected) = (0, 0.0, 0.0);
        for bucket in 0..30 {
            let keys = *rng.choice(&[10, 1000, 20_000, sized(50_000, 200_000)]).unwrap();
            let before = filter.fpr();
            for _ in 0..keys {
                let new = filter.insert_new(key(0, next), 100 * bucket + rng.u64(..100)).unwrap();
                false_seen += f64::from(u8::from(!new));
                next += 1;
            }
            // Not exact: an old sub-filter leaves at the start of a bucket, the current one fills during it.
            expected += keys as f64 * before.midpoint(filter.fpr());
            assert!(filter.fpr() <= fpr, "{} of {fpr}", filter.fpr());
        }
        let near = |measured: f64, expected: f64| {
            let off = (measured - expected).abs();
            assert!(off < 4.0 * expected.sqrt() + 0.15 * expected, "{fpr}: {measured}, not {expected}");
        };
        near(false_seen, expected);
        assert!(false_seen < fpr * next as f64);
        assert!(filter.layers().count() > filter.filters(), "some have several layers");
        let probes = (sized(3000.0, 20_000.0) / filter.fpr()) as u64;
        let passed = (0..probes).filter(|&i| filter.contains(key(1, i)) == Verdict::Maybe).count() as f64;
        let expected = filter.fpr() * probes as f64;
        println!("asked for {fpr}, expected {}, measured {}", filter.fpr(), passed / probes as f64);
        assert!((passed - expected).abs() < 4.0 * expected.sqrt(), "{fpr}: {passed}, not {expected}");
    }
}

/// A full filter of steady traffic is near the rate that was asked for, so it wastes little memory.
#[test]
fn steady_traffic_takes_the_memory_of_the_formula() {
    let (fpr, per_bucket) = (0.01, 40_000);
    let mut filter = rotating(1200, fpr, 1 << 30);
    for i in 0..per_bucket * 40 {
        filter.insert_new(key(0, i), i * 100 / per_bucket).unwrap();
    }
    let bytes_per_key = filter.bytes() as f64 / filter.keys() as f64;
    println!("{bytes_per_key} bytes a key, {}", filter.fpr());
    assert!(bytes_per_key < 1.2 * (26.0 / fpr).ln() / std::f64::consts::LN_2.powi(2) / 8.0);
    assert!((0.15 * fpr..fpr).contains(&filter.fpr()), "{}", filter.fpr());
}

#[test]
fn i1_a_full_filter_refuses_keys_by_name_and_forgets_none() {
    for bytes_max in [20_000, 1 << 20] {
        let mut filter = rotating(1200, 0.01, bytes_max);
        let mut kept = Vec::new();
        let error = (0..).find_map(|i| match filter.insert_new(key(0, i), i / 10_000) {
            Ok(new) => {
                kept.extend(new.then_some(i));
                None
            }
            Err(error) => Some(error),
        });
        assert!(
            matches!(error, Some(Error::Full { capacity, .. }) if capacity == filter.keys()),
            "{error:?}"
        );
        let used = filter.bytes() as f64 / bytes_max as f64;
        assert!((0.9..=1.0).contains(&used) && filter.fpr() <= 0.01, "{used}");
        assert!(filter.keys() as f64 > 0.7 * bytes_max as f64 / 2.1, "{} keys", filter.keys());
        assert!(kept.iter().all(|&i| filter.contains(key(0, i)) == Verdict::Maybe));
        filter.advance(5000);
        assert_eq!((filter.filters(), filter.keys(), filter.bytes(), filter.fpr()), (0, 0, 0, 0.0));
        assert!(filter.insert_new(key(0, 0), 5000).unwrap());
    }
    let no_room = rotating(1200, 0.01, 0).insert_new("a", 0);
    assert!(matches!(no_room, Err(Error::Full { capacity: 0, .. })), "{no_room:?}");
}

#[test]
fn a_window_or_a_rate_that_no_filter_has_is_refused_by_name() {
    for (window, fpr) in [(0, 0.01), (1, 0.0), (1, 1.0), (1, 1e-11), (1, f64::NAN), (1, -1.0)] {
        let refused = RotatingBloom::new(window, fpr, 1 << 20);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{window}, {fpr}: {refused:?}");
    }
    let [a, b] = [(); 2].map(|()| RotatingBloom::new(1, 0.01, 1 << 20).unwrap());
    assert_ne!(a.rotation().hash, b.rotation().hash, "secret keys");
}
