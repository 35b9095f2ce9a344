//! The policies' filters alone: what SlateDB expects of every policy, damage, and no false negatives.

use crate::prefixes::with_prefixes;
use crate::support::{bloom, built, encoded, entry, key, parity, point, prefix};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use sidebloom_filter::Width;
use sidebloom_slatedb::{BitsPerKeyError, BloomReader, ParityFilterPolicy};
use slatedb::bytes::Bytes;
use slatedb::{BloomFilterPolicy, FilterContext, FilterPolicy, FilterQuery, FilterTarget};
use std::ops::Bound;
use std::sync::Arc;

/// SlateDB's policy and ours, without and with prefixes.
fn all() -> [Arc<dyn FilterPolicy>; 4] {
    let [ours, theirs] = with_prefixes(0);
    [parity(), bloom(), ours, theirs]
}

proptest! {
    /// What holds for SlateDB's policy must hold for ours.
    #[test]
    fn i1_no_policy_denies_what_it_was_given(
        keys in btree_set(vec(any::<u8>(), 0..12), 0..400),
        versions in 1..3_usize,
    ) {
        let keys: Vec<Bytes> = keys.into_iter().map(Bytes::from).collect();
        for policy in all() {
            let entries = keys.iter().flat_map(|key| std::iter::repeat_n(key.clone(), versions));
            let filter = built(&*policy, entries);
            let wire = encoded(&*filter);
            let decoded = policy.decode(&wire);
            prop_assert_eq!(decoded.size(), filter.size());
            prop_assert_eq!(&encoded(&*decoded), &wire, "decoding loses nothing");
            let clamped = decoded.clamp_allocated_size();
            prop_assert_eq!(clamped.size(), decoded.size());
            for filter in [filter, decoded, clamped] {
                for key in &keys {
                    prop_assert!(filter.might_match(&point(key)), "{}", policy.name());
                    for len in 0..=key.len() {
                        prop_assert!(filter.might_match(&prefix(&key[..len])), "{}", policy.name());
                    }
                    let range = FilterQuery::range(Bound::Included(key.clone()), Bound::Unbounded);
                    prop_assert!(filter.might_match(&range), "{}", policy.name());
                }
            }
        }
    }

    #[test]
    fn i1_a_damaged_filter_denies_nothing_and_nothing_panics(
        keys in 1..600_u32,
        changes in vec((any::<prop::sample::Index>(), 1..=255_u8), 0..4),
        cut in any::<prop::sample::Index>(),
        tail in vec(any::<u8>(), 0..3),
    ) {
        let policy = parity();
        let sound = encoded(&*built(&*policy, (0..keys).map(key)));
        let mut damaged = sound.clone();
        for (at, by) in &changes {
            damaged[at.index(sound.len())] ^= by;
        }
        if changes.is_empty() && tail.is_empty() {
            damaged.truncate(cut.index(sound.len()));
        }
        damaged.extend(&tail);
        prop_assume!(damaged != sound);
        let filter = policy.decode(&damaged);
        for n in 0..keys + 50 {
            prop_assert!(filter.might_match(&point(&key(n))), "key {n}");
        }
        prop_assert_eq!((filter.size(), encoded(&*filter)), (0, Vec::new()));
    }
}

#[test]
fn what_a_policy_cannot_answer_is_maybe() {
    for policy in [parity(), bloom()] {
        assert!(!policy.supports_prefix_queries() && !policy.supports_range_queries());
        let filter = built(&*policy, (0..1000).map(key));
        assert!(!filter.might_match(&point(b"another key")));
        let context = Some(FilterContext::Inline([7; 64]));
        assert!(!filter.might_match(&point(b"another key").with_context(context)), "{}", policy.name());
        assert!(filter.might_match(&prefix(b"another")));
        let bounds = (Bound::Included(Bytes::from("x")), Bound::Excluded(Bytes::from("y")));
        let target = FilterTarget::Range { lower: bounds.0, upper: bounds.1 };
        assert!(filter.might_match(&FilterQuery { target, context: None }));
    }
}

#[test]
fn the_name_says_which_prefixes_are_hashed_and_not_the_width() {
    assert_eq!(parity().name(), "sidebloom.parity");
    assert_eq!(with_prefixes(0)[0].name(), "sidebloom.parity:p=first3");
    let narrow = ParityFilterPolicy::new(8.0).unwrap();
    let wide = ParityFilterPolicy::new(20.0).unwrap();
    assert_eq!(narrow.name(), wide.name());
    let filter = wide.decode(&encoded(&*built(&narrow, (0..1000).map(key))));
    assert!(
        (0..1000).all(|n| filter.might_match(&point(&key(n)))),
        "whatever the width and seed of the reader"
    );
    assert!(!filter.might_match(&point(b"another key")));
}

#[test]
fn bits_per_key_choose_the_widest_filter_that_fits() {
    let width = |bits| ParityFilterPolicy::new(bits).map(|policy| policy.width());
    let (seven, sixteen) = (Width::Seven, Width::Sixteen);
    assert_eq!([7.7, 10.0, 10.1, 100.0].map(width), [seven, Width::Eight, Width::Nine, sixteen].map(Ok));
    assert_eq!(width(7.0), Err(BitsPerKeyError { bits_per_key: 7.0, min: 7.68 }));
    assert!([f64::NAN, -1.0, f64::NEG_INFINITY].map(width).iter().all(Result::is_err));
    for bits in [8.0, 10.0, 12.0, 14.0] {
        let policy = ParityFilterPolicy::new(bits).unwrap();
        for keys in [1, 10, 1000, 50_000] {
            let size = encoded(&*built(&policy, (0..keys).map(key))).len();
            let estimate = policy.estimate_size(keys as usize);
            assert!(size <= estimate + 3 * 64 + estimate / 50, "{bits}, {keys}: {size}, {estimate}");
            assert!(size as f64 * 8.0 <= bits * f64::from(keys) + 400.0 * 8.0, "{bits}, {keys}: {size}");
        }
    }
}

#[test]
fn a_bloom_reader_reads_bloom_filters_and_writes_one_that_denies_nothing() {
    let policy = BloomReader::new(BloomFilterPolicy::new(10));
    assert_eq!(policy.name(), bloom().name());
    let old = policy.decode(&encoded(&*built(&*bloom(), (0..1000).map(key))));
    assert!((0..1000).all(|n| old.might_match(&point(&key(n)))) && !old.might_match(&point(b"another key")));
    let bytes = encoded(&*built(&policy, (0..1000).map(key)));
    assert_eq!(bytes.len(), 3);
    for reader in [bloom(), Arc::new(policy)] {
        let new = reader.decode(&bytes);
        assert!((0..2000).all(|n| new.might_match(&point(&key(n)))));
    }
    let [_, prefixed] = with_prefixes(0);
    let new = prefixed.decode(&bytes);
    assert!(new.might_match(&prefix(b"abc")) && new.might_match(&point(b"abc")));
}

/// Probes each key of many filters, built and decoded. The long form has 10 M probes.
#[test]
fn i1_no_false_negatives_in_many_probes() {
    let long = std::env::var_os("SIDEBLOOM_TEST_LONG").is_some();
    let wanted: u64 = if long { 10_000_000 } else { 200_000 };
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut probes, mut denied) = (0, 0_u64);
    while probes < wanted {
        let policy = ParityFilterPolicy::new(rng.f64() * 14.0 + 7.7).unwrap();
        let mut keys: Vec<u64> =
            (0..rng.usize(1..if long { 200_000 } else { 20_000 })).map(|_| rng.u64(..)).collect();
        keys.sort_unstable();
        let bytes = |key: &u64| Bytes::copy_from_slice(&key.to_be_bytes());
        let mut builder = policy.builder();
        keys.iter().for_each(|key| builder.add_entry(&entry(bytes(key))));
        let filter = builder.build();
        let decoded = policy.decode(&encoded(&*filter));
        for key in &keys {
            let query = FilterQuery::point(bytes(key));
            denied += u64::from(!filter.might_match(&query)) + u64::from(!decoded.might_match(&query));
        }
        probes += 2 * keys.len() as u64;
    }
    println!("{probes} probes, {denied} false negatives");
    assert_eq!(denied, 0, "of {probes}");
}
