use super::*;
use crate::error::Error;
use crate::hash::KeyHasher;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;
use std::ops::Bound;

const HASHER: KeyHasher = KeyHasher::siphash13([1, 2]);

fn extractor() -> impl Strategy<Value = PrefixExtractor> {
    prop_oneof![
        (1usize..5).prop_map(PrefixExtractor::fixed),
        (select(vec![b'/', 0, 0xff]), 1usize..4).prop_map(|(byte, n)| PrefixExtractor::delimited(byte, n)),
    ]
}

fn set() -> impl Strategy<Value = PrefixSet> {
    vec(extractor(), 1..5).prop_map(|mut all| {
        all.sort_by_key(PrefixExtractor::code);
        all.dedup();
        PrefixSet::new(all).unwrap()
    })
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(select(vec![b'a', b'/', 0, 0xfe, 0xff]), 0..7)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![key().prop_map(Bound::Included), key().prop_map(Bound::Excluded), Just(Bound::Unbounded)]
}

#[test]
fn delimiters_at_the_ends_and_short_keys() {
    let [row, column] = PrefixExtractor::row_and_column(b'/');
    assert_eq!(
        [&b""[..], b"a", b"/", b"/a", b"a/"].map(|key| row.extract(key)),
        [None, None, Some(&b"/"[..]), Some(b"/"), Some(b"a/")]
    );
    assert_eq!(
        [&b"/"[..], b"//", b"//a", b"a/b/"].map(|key| column.extract(key)),
        [None, Some(&b"//"[..]), Some(b"//"), Some(b"a/b/")]
    );
    let four = PrefixExtractor::fixed(4);
    assert_eq!(
        [&b"abc"[..], b"abcd", b"abcde"].map(|key| four.extract(key)),
        [None, Some(&b"abcd"[..]), Some(b"abcd")]
    );
}

#[test]
fn ranges_within_a_prefix_and_beyond() {
    use Bound::{Excluded, Included, Unbounded};
    let set = PrefixSet::new([PrefixExtractor::fixed(2)]).unwrap();
    let asks = |lower: &[u8], upper| PrefixQuery::new(&set, &HASHER, 0, Included(lower), upper).is_some();
    for upper in [Excluded(&b"ac"[..]), Excluded(b"abz"), Included(b"ab"), Included(b"ab\xff\xff")] {
        assert!(asks(b"ab", upper) && asks(b"abc", upper), "{upper:?}");
    }
    for upper in [Included(&b"ac"[..]), Excluded(b"ac\0"), Excluded(b"ad"), Excluded(b"b"), Unbounded] {
        assert!(!asks(b"ab", upper), "{upper:?}");
    }
    assert!(!asks(b"a", Excluded(b"b")) && !asks(b"", Excluded(b"b")), "outside the domain");
    assert!(asks(b"a\xff", Excluded(b"b")) && !asks(b"a\xff", Excluded(b"b\0")));
    assert!(asks(b"\xff\xff", Unbounded) && asks(b"\xff\xffa", Excluded(b"\xff\xffb")));
    assert!(PrefixQuery::new(&set, &HASHER, 0, Unbounded, Excluded(b"ab")).is_none());
    assert!(PrefixQuery::new(&set, &HASHER, 0, Excluded(b"ab"), Excluded(b"ac")).is_some());
}

/// Stored filters depend on them.
#[test]
fn golden_codes_and_members_are_frozen() {
    let all = [PrefixExtractor::fixed(8), PrefixExtractor::delimited(b'/', 2)];
    assert_eq!(all.map(|extractor| extractor.code()), [0x8_0000_0001, 0x2_0000_2f02]);
    assert_eq!(all.map(|extractor| extractor.member(7)), GOLDEN);
    assert_ne!(all[0].member(7), 7);
}

const GOLDEN: [u64; 2] = [277079824296278038, 15663509799205170404];

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let refused = |all: Vec<PrefixExtractor>| match PrefixSet::new(all) {
        Err(Error::InvalidArgument(what)) => what,
        other => panic!("{other:?}"),
    };
    for number in [0, PrefixExtractor::MAX + 1, u32::MAX as usize] {
        assert!(refused(vec![PrefixExtractor::fixed(number)]).contains(&format!("{number} bytes")));
        assert!(refused(vec![PrefixExtractor::delimited(b'/', number)]).contains("delimiters"));
    }
    let twice = PrefixExtractor::delimited(b'/', 1);
    assert_eq!(refused(vec![twice, PrefixExtractor::fixed(1), twice]), "prefix delimited:/:1 is given twice");
    assert!(refused((1..=9).map(PrefixExtractor::fixed).collect()).contains("more than 8"));
    assert!(PrefixSet::new((1..=8).map(PrefixExtractor::fixed)).is_ok());
}

#[test]
fn codes_that_no_extractor_has_are_refused() {
    for code in [0, 1, 3 | 1 << 32, 1 | 1 << 8 | 1 << 32, 2 | 1 << 16 | 1 << 32, 1 | (64 << 10 | 1) << 32] {
        assert_eq!(PrefixExtractor::from_code(code), None, "{code:x}");
    }
}

proptest! {
    #[test]
    fn codes_come_back(extractor in extractor()) {
        prop_assert_eq!(PrefixExtractor::from_code(extractor.code()), Some(extractor));
    }

    #[test]
    fn the_order_of_extractors_does_not_matter(set in set()) {
        let reversed: Vec<_> = set.iter().collect();
        prop_assert_eq!(PrefixSet::new(reversed.into_iter().rev()).unwrap(), set);
    }

    #[test]
    fn each_distinct_prefix_of_sorted_keys_comes_once(set in set(), keys in btree_set(key(), 0..20)) {
        let mut found = Vec::new();
        let mut distinct = DistinctPrefixes::new(&set, HASHER);
        keys.iter().for_each(|key| distinct.of_next(0, key, |member| found.push(member)));
        let expected: BTreeSet<u64> = keys
            .iter()
            .flat_map(|key| set.iter().filter_map(|e| Some(e.member(HASHER.hash(e.extract(key)?)))))
            .collect();
        prop_assert_eq!(found.len(), expected.len());
        prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    /// I1: a filter of the keys has the hash that every range holding one of them probes for.
    #[test]
    fn i1_a_range_asks_for_a_prefix_of_every_key_within_it(
        known in set(), asked in set(), key in key(), lower in bound(), upper in bound(),
    ) {
        let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let query = PrefixQuery::new(&asked, &HASHER, 0, lower, upper);
        let members: Vec<u64> =
            known.iter().filter_map(|e| Some(e.member(HASHER.hash(e.extract(&key)?)))).collect();
        let is_within = std::ops::RangeBounds::<[u8]>::contains(&(lower, upper), &key[..]);
        if let Some(hash) = query.and_then(|query| query.hash_for(&known)).filter(|_| is_within) {
            prop_assert!(members.contains(&hash));
        }
    }

    #[test]
    fn the_longest_prefix_is_asked_for(set in set(), prefix in key()) {
        let end = [&prefix[..], &[0xff; 9]].concat();
        let (lower, upper) = (Bound::Included(&prefix[..]), Bound::Excluded(&end[..]));
        let longest = set.iter().filter_map(|e| e.extract(&prefix)).map(<[u8]>::len).max();
        let query = PrefixQuery::new(&set, &HASHER, 0, lower, upper);
        let hashes: Vec<u64> = set
            .iter()
            .filter(|e| e.extract(&prefix).map(<[u8]>::len) == longest)
            .filter_map(|e| Some(e.member(HASHER.hash(e.extract(&prefix)?))))
            .collect();
        let asked = query.and_then(|query| query.longest());
        prop_assert_eq!(asked.is_some(), longest.is_some());
        prop_assert!(asked.is_none_or(|hash| hashes.contains(&hash)));
        prop_assert_eq!(asked, query.and_then(|query| query.hash_for(&set)));
    }
}
