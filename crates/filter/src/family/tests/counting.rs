//! The counting filter against a multiset.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

proptest! {
    #[test]
    fn i1_whatever_was_inserted_more_often_than_removed_is_maybe_there(
        steps in proptest::collection::vec((any::<bool>(), 0u64..40), 0..400),
    ) {
        let mut filter = CountingBloom::new(400, 0.05).unwrap();
        let mut model: HashMap<u64, u32> = HashMap::new();
        for (insert, i) in steps {
            let held = model.entry(i).or_default();
            if insert {
                filter.insert(key(0, i)).unwrap();
                *held += 1;
            } else if *held > 0 {
                prop_assert!(filter.remove(key(0, i)));
                *held -= 1;
            }
        }
        let total: u32 = model.values().sum();
        prop_assert_eq!(filter.keys(), u64::from(total));
        for (&i, &held) in &model {
            prop_assert!(held == 0 || filter.contains(key(0, i)) == Verdict::Maybe);
        }
        // Without saturation the counters are those of the model's own filter: removals left no trace.
        if filter.saturated() == 0 {
            let mut fresh = CountingBloom::with_plan(*filter.plan()).unwrap();
            for (&i, &held) in &model {
                (0..held).for_each(|_| assert!(fresh.insert(key(0, i)).is_ok()));
            }
            prop_assert!(filter == fresh);
        }
    }
}

#[test]
fn a_saturated_counter_never_goes_down() {
    let mut filter = CountingBloom::new(1000, 0.01).unwrap();
    (0..20).for_each(|_| assert!(filter.insert("often").is_ok()));
    let stuck = filter.saturated();
    assert!(stuck > 0);
    filter.insert("another").unwrap();
    (0..30).for_each(|_| {
        filter.remove("often");
    });
    assert_eq!(filter.saturated(), stuck);
    assert_eq!((filter.contains("often"), filter.contains("another")), (Verdict::Maybe, Verdict::Maybe));
}

#[test]
fn overflow_prediction_is_fan_s_and_matches_small_counters() {
    // Full, at the best k, counters reach 16 with probability 1.37e-15 (Fan et al.); 15 is 23 times as
    // likely.
    let filter = CountingBloom::new(1_000_000, 0.01).unwrap();
    let each = filter.expected_saturated(filter.plan().capacity()) / filter.plan().shape.bits() as f64;
    assert!((1e-15..1e-13).contains(&each), "{each}");
    // Overfull on purpose, with enough counters to count.
    let shape = Shape::new(1 << 16, 1).unwrap();
    let plan = Plan { shape, fpr: 0.999_999_99, hash: HashFunction::default() };
    let mut filter = CountingBloom::with_plan(plan).unwrap();
    let keys = 8 << 16;
    (0..keys).for_each(|i| assert!(filter.insert(key(0, i)).is_ok()));
    let (expected, found) = (filter.expected_saturated(keys), filter.saturated() as f64);
    assert!((found / expected - 1.0).abs() < 0.1, "{found} found, {expected} expected");
}

/// The plain filter of a counting filter is, bit for bit, the Bloom filter of its keys.
#[test]
fn the_plain_filter_of_a_counting_one_is_the_bloom_filter_of_its_keys() {
    let plan = plan(3000, 0.01, HashFunction::Murmur3(5));
    let mut counting = CountingBloom::with_plan(plan).unwrap();
    (0..2000).for_each(|i| assert!(counting.insert(key(0, i)).is_ok()));
    (1000..2000).for_each(|i| assert!(counting.remove(key(0, i))));
    assert_eq!(counting.to_bloom().unwrap().lines(), bloom_of(plan, 0..1000).lines());
}

/// Keys chosen by the default hash pass a counting filter no more often than others.
#[test]
fn keys_chosen_by_the_default_hash_pass_a_counting_filter_as_others_do() {
    let mut secret = CountingBloom::new(2000, 0.01).unwrap();
    let mut public = CountingBloom::with_plan(Plan::new(2000, 0.01).unwrap()).unwrap();
    for filter in [&mut secret, &mut public] {
        (0..2000).for_each(|i| assert!(filter.insert(key(0, i)).is_ok()));
    }
    let chosen: Vec<_> =
        (0..).map(|i| key(1, i)).filter(|key| public.contains(key) == Verdict::Maybe).take(500).collect();
    // With a publicly known hash, removing them makes the filter deny existing keys.
    chosen.iter().for_each(|key| _ = public.remove(key));
    assert!((0..2000).any(|i| public.contains(key(0, i)) == Verdict::Absent));
    let passed = chosen.iter().filter(|key| secret.contains(key) == Verdict::Maybe).count();
    assert!(passed < 25, "{passed} of 500 pass at a rate of 1 %");
}
