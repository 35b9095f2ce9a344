//! What must hold for every type of the family. I1 in the names: no false negative.

mod algebra;
mod counting;
mod noisy;
mod rates;
mod rotating;
mod shape;
mod small;

use super::*;
use crate::error::Error;
use crate::{FilterSpec, Verdict, Width};

/// Key `i` of set `set`.
fn key(set: u64, i: u64) -> [u8; 16] {
    (u128::from(set) << 64 | u128::from(i)).to_le_bytes()
}

const HASHES: [HashFunction; 3] =
    [HashFunction::Xxh3(1), HashFunction::Murmur3(1), HashFunction::SipHash13([1, 2])];

fn plan(keys: u64, fpr: f64, hash: HashFunction) -> Plan {
    Plan { hash, ..Plan::new(keys, fpr).unwrap() }
}

fn bloom_of(plan: Plan, keys: impl Iterator<Item = u64>) -> Bloom {
    let mut filter = Bloom::with_plan(plan).unwrap();
    for i in keys {
        filter.insert(key(0, i)).unwrap();
    }
    filter
}

#[test]
fn i1_every_type_says_maybe_to_all_its_keys_up_to_its_capacity() {
    for hash in HASHES {
        for keys in [1, 2, 51, 1000, 20_000] {
            let plan = plan(keys, 0.01, hash);
            let bloom = bloom_of(plan, 0..keys);
            let mut counting = CountingBloom::with_plan(plan).unwrap();
            let mut scalable = ScalableBloom::new(10, 0.01).unwrap();
            let mut noisy = NoisyBloom::new(keys, 3, 0.2, 9).unwrap();
            let mut blocked = LineFilter::empty_blocked(keys, 10.0, 5).unwrap();
            for i in 0..keys {
                counting.insert(key(0, i)).unwrap();
                scalable.insert(key(0, i)).unwrap();
                noisy.insert(key(0, i)).unwrap();
                blocked.insert(key(0, i)).unwrap();
            }
            for i in 0..keys {
                let verdicts = [
                    bloom.contains(key(0, i)),
                    counting.contains(key(0, i)),
                    scalable.contains(key(0, i)),
                    noisy.contains(key(0, i)),
                    blocked.contains(key(0, i)),
                ];
                assert_eq!(verdicts, [Verdict::Maybe; 5], "key {i} of {keys}");
            }
        }
    }
}

#[test]
fn a_full_filter_refuses_new_keys_and_still_answers() {
    let full = |e: crate::Result<bool>| matches!(e, Err(Error::Full { .. }));
    let mut bloom = Bloom::new(1000, 0.01).unwrap();
    let capacity = bloom.plan().capacity();
    let refused = (0..2 * capacity).find(|&i| full(bloom.insert(key(0, i)))).unwrap();
    assert_eq!(bloom.keys(), capacity);
    assert!(capacity >= 1000 && bloom.fpr() < 0.0105, "{capacity}: {}", bloom.fpr());
    assert_eq!(bloom.contains(key(0, refused)), Verdict::Absent);
    assert!(!bloom.insert(key(0, 0)).unwrap(), "a key that is there needs no room");

    let mut counting = CountingBloom::new(100, 0.01).unwrap();
    let capacity = counting.plan().capacity();
    assert!((0..capacity).all(|i| counting.insert(key(0, i)).is_ok()));
    assert!(full(counting.insert(key(0, capacity))));
    assert!(counting.remove(key(0, 0)));
    assert!(counting.insert(key(0, capacity)).is_ok(), "a key has left");

    let mut blocked = LineFilter::empty_blocked(1000, 10.0, 0).unwrap();
    let refused = (0..10_000).find(|&i| full(blocked.insert(key(0, i)))).unwrap();
    assert!((1000..1400).contains(&refused) && blocked.fpr() < 0.03, "{refused}: {}", blocked.fpr());

    let mut noisy = NoisyBloom::new(10, 2, 0.3, 0).unwrap();
    assert!((0..1000).any(|i| full(noisy.insert(key(0, i)))));
}

#[test]
fn a_parity_filter_takes_no_new_key_and_only_counting_filters_forget() {
    let spec = FilterSpec::Parity { width: Width::Eight };
    let mut parity = AnyFilter::Lines(LineFilter::build(spec, [key(0, 0)], 1).unwrap());
    assert!(
        matches!(parity.insert(key(0, 1)), Err(Error::InvalidArgument(why)) if why.contains("build it again"))
    );
    assert!(matches!(parity.remove(key(0, 0)), Err(Error::InvalidArgument(why)) if why.contains("parity")));
}

#[test]
fn a_series_keeps_its_rate_while_it_grows_a_thousandfold() {
    let mut scalable = ScalableBloom::new(100, 0.01).unwrap();
    (0..100_000).for_each(|i| assert!(scalable.insert(key(0, i)).is_ok()));
    assert!(scalable.layers().len() > 8 && scalable.fpr() < 0.01, "{}", scalable.fpr());
    let maybe = (0..200_000).filter(|&i| scalable.contains(key(1, i)) == Verdict::Maybe).count();
    let measured = maybe as f64 / 200_000.0;
    assert!(
        (measured / scalable.fpr() - 1.0).abs() < 0.1,
        "{measured} measured, {} predicted",
        scalable.fpr()
    );
}

#[test]
fn parts_of_a_noisy_filter_must_err_independently() {
    let part = Bloom::new(100, 0.2).unwrap();
    assert!(matches!(NoisyBloom::from_parts(vec![part.clone(), part]), Err(Error::Mismatch { .. })));
    let noisy = NoisyBloom::new(100, 4, 0.2, 7).unwrap();
    assert_eq!(NoisyBloom::from_parts(noisy.parts().to_vec()).unwrap(), noisy);
    assert!(NoisyBloom::new(100, 0, 0.2, 7).is_err());
}

#[test]
fn many_keys_at_once_get_the_answers_of_each() {
    let keys: Vec<[u8; 16]> = (0..3000).map(|i| key(0, i)).collect();
    let empty = || -> [AnyFilter; 4] {
        let plan = plan(2000, 0.05, HashFunction::Xxh3(1));
        [
            AnyFilter::Lines(LineFilter::empty_blocked(2000, 6.0, 1).unwrap()),
            AnyFilter::Bloom(Bloom::with_plan(plan).unwrap()),
            AnyFilter::Counting(CountingBloom::with_plan(plan).unwrap()),
            AnyFilter::Scalable(ScalableBloom::new(100, 0.05).unwrap()),
        ]
    };
    for (mut one_by_one, mut at_once) in empty().into_iter().zip(empty()) {
        let refused = keys.iter().find(|key| one_by_one.insert(key).is_err());
        match at_once.insert_many(&keys) {
            Ok(()) => assert_eq!(refused, None),
            Err(error) => assert!(refused.is_some() && matches!(error, Error::Full { .. })),
        }
        assert_eq!(at_once.keys(), one_by_one.keys(), "{}", at_once.name());
        assert_eq!(at_once.contains_many(&keys), one_by_one.contains_many(&keys), "{}", at_once.name());
    }
    let filters =
        empty().into_iter().map(|mut filter| filter.insert_many(&keys[..2000]).map(|()| filter).unwrap());
    let parity = LineFilter::build(FilterSpec::Parity { width: Width::Seven }, &keys[..2000], 1).unwrap();
    for filter in filters.chain([AnyFilter::Lines(parity)]) {
        let each: Vec<Verdict> = keys.iter().map(|key| filter.contains(key)).collect();
        assert_eq!(filter.contains_many(&keys), each, "{}", filter.name());
        assert!(each[..2000].iter().all(|verdict| *verdict == Verdict::Maybe));
        assert!(each.iter().filter(|verdict| **verdict == Verdict::Absent).count() > 900);
    }
}
