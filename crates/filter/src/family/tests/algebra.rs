//! Laws of set algebra and of folding.

use super::*;
use proptest::collection::btree_set;
use proptest::prelude::*;

fn filters(seed: u64, sets: [&std::collections::BTreeSet<u64>; 2]) -> [Bloom; 2] {
    sets.map(|set| bloom_of(plan(3000, 0.01, HashFunction::Xxh3(seed)), set.iter().copied()))
}

proptest! {
    #[test]
    fn union_is_the_filter_of_all_keys_and_intersection_holds_the_common_ones(
        a in btree_set(0u64..1000, 0..300), b in btree_set(0u64..1000, 0..300), seed: u64,
    ) {
        let [left, right] = filters(seed, [&a, &b]);
        let union = left.union(&right).unwrap();
        let [whole, _] = filters(seed, [&a.union(&b).copied().collect(), &b]);
        prop_assert_eq!(union.lines(), whole.lines());
        let swapped = right.union(&left).unwrap();
        prop_assert_eq!(swapped.lines(), union.lines());

        let common = left.intersection(&right).unwrap();
        prop_assert!(a.intersection(&b).all(|&i| common.contains(key(0, i)) == Verdict::Maybe));
        prop_assert!(common.fpr() <= left.fpr().min(right.fpr()));
        let itself = left.intersection(&left).unwrap();
        prop_assert_eq!(itself.lines(), left.lines());
    }

    #[test]
    fn estimates_are_near_the_truth(
        a in btree_set(0u64..4000, 0..1500), b in btree_set(0u64..4000, 0..1500), seed: u64,
    ) {
        let [left, right] = filters(seed, [&a, &b]);
        let overlap = left.overlap(&right).unwrap();
        let near = |estimate: f64, truth: usize| (estimate - truth as f64).abs() < 40.0;
        prop_assert!(near(overlap.left, a.len()) && near(overlap.right, b.len()), "{:?}", overlap);
        prop_assert!(near(overlap.union, a.union(&b).count()), "{:?}", overlap);
        prop_assert!(near(overlap.intersection, a.intersection(&b).count()), "{:?}", overlap);
        prop_assert!((0.0..=1.0).contains(&overlap.jaccard()));
    }

    #[test]
    fn folding_commutes_with_inserting_and_with_union(
        a in btree_set(0u64..1000, 0..300), b in btree_set(0u64..1000, 0..300), lines in 1u64..100,
    ) {
        let of = |bits: u64, set: &std::collections::BTreeSet<u64>| {
            let shape = Shape::new(bits, 5).unwrap();
            bloom_of(Plan { shape, ..plan(1, 0.999, HashFunction::Xxh3(2)) }, set.iter().copied())
        };
        let (large_a, large_b) = (of(1024 * lines, &a), of(1024 * lines, &b));
        let small = of(512 * lines, &a);
        let folded = large_a.halved().unwrap();
        prop_assert_eq!(folded.lines(), small.lines());
        prop_assert_eq!(folded.plan().shape, small.plan().shape);
        let union_folded = large_a.union(&large_b).unwrap().halved().unwrap();
        let folded_united = folded.union(&large_b.halved().unwrap()).unwrap();
        prop_assert_eq!(union_folded.lines(), folded_united.lines());
    }
}

#[test]
fn unequal_filters_are_refused_by_name() {
    let base = plan(1000, 0.01, HashFunction::Xxh3(1));
    let filter = Bloom::with_plan(base).unwrap();
    let others = [
        Plan { hash: HashFunction::Xxh3(2), ..base },
        Plan { hash: HashFunction::Murmur3(1), ..base },
        Plan { hash: HashFunction::SipHash13([1, 0]), ..base },
        Plan { shape: Shape::new(base.shape.bits(), base.shape.hashes() + 1).unwrap(), ..base },
        Plan { shape: Shape::new(base.shape.bits() + 1, base.shape.hashes()).unwrap(), ..base },
    ];
    for other in others {
        let other = Bloom::with_plan(other).unwrap();
        let refused = |e: crate::Error| matches!(e, Error::Mismatch { .. });
        assert!(filter.union(&other).is_err_and(refused));
        assert!(filter.intersection(&other).is_err_and(refused));
        assert!(filter.overlap(&other).is_err_and(refused));
    }
    let [a, b] =
        [(); 2].map(|()| Bloom::with_plan(Plan { hash: HashFunction::secret().unwrap(), ..base }).unwrap());
    let error = a.union(&b).unwrap_err().to_string();
    assert!(error.contains("a secret key, but the keys differ"), "{error}");
    assert!(a.union(&a.clone()).is_ok());
    let other_rate = Bloom::with_plan(Plan { fpr: 0.5, ..base }).unwrap();
    assert!(filter.union(&other_rate).is_ok(), "the rate is a promise, not a property of the bits");
}

#[test]
fn filters_with_all_bits_set_have_no_size_and_share_nothing_that_is_known() {
    let plan = Plan { shape: Shape::new(512, 1).unwrap(), ..plan(1, 0.999_999, HashFunction::Xxh3(0)) };
    let full = bloom_of(plan, 0..20_000);
    assert!(full.estimated_keys().is_infinite());
    let overlap = full.overlap(&full).unwrap();
    assert_eq!((overlap.intersection, overlap.jaccard()), (0.0, 0.0));
}

#[test]
fn an_odd_number_of_lines_cannot_be_halved() {
    let plan = Plan { shape: Shape::new(3 * 512, 3).unwrap(), ..plan(1, 0.5, HashFunction::Xxh3(0)) };
    assert!(matches!(Bloom::with_plan(plan).unwrap().halved(), Err(Error::InvalidArgument(_))));
}
