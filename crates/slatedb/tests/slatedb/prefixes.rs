//! Prefix extractors of several kinds: no policy may deny a key's prefix.

use crate::support::{built, encoded, point, prefix};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use sidebloom_slatedb::ParityFilterPolicy;
use slatedb::bytes::Bytes;
use slatedb::{BloomFilterPolicy, FilterPolicy, PrefixExtractor, PrefixTarget};
use std::sync::Arc;

/// An extractor as a function of the bytes, and whether they are a whole key.
struct Extractor(&'static str, fn(&[u8], bool) -> Option<usize>);

impl PrefixExtractor for Extractor {
    fn name(&self) -> &str {
        self.0
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        match target {
            PrefixTarget::Point(key) => self.1(key, true),
            PrefixTarget::Prefix(prefix) => self.1(prefix, false),
        }
    }
}

/// The first three bytes.
const FIRST_3: Extractor = Extractor("first3", |bytes, _| (bytes.len() >= 3).then_some(3));

const KINDS: [Extractor; 6] = [
    FIRST_3,
    Extractor("nothing", |_, _| None),
    Extractor("the empty prefix", |_, _| Some(0)),
    Extractor("up to the first colon", |bytes, _| {
        bytes.iter().position(|&byte| byte == b':').map(|at| at + 1)
    }),
    // More bytes could follow a prefix, with another colon.
    Extractor("up to the last colon", |bytes, whole| {
        bytes.iter().rposition(|&byte| byte == b':').filter(|_| whole).map(|at| at + 1)
    }),
    Extractor("two bytes, of keys with an a", |bytes, _| (bytes.len() > 1 && bytes[0] == b'a').then_some(2)),
];

/// Our policy and SlateDB's, with an extractor.
pub fn with_prefixes(of: usize) -> [Arc<dyn FilterPolicy>; 2] {
    let extractor = || Arc::new(Extractor(KINDS[of].0, KINDS[of].1));
    [
        Arc::new(ParityFilterPolicy::new(10.0).unwrap().with_prefix_extractor(extractor())),
        Arc::new(BloomFilterPolicy::new(10).with_prefix_extractor(extractor())),
    ]
}

proptest! {
    #[test]
    fn i1_no_policy_denies_a_prefix_that_a_key_has(
        keys in btree_set(vec(select(&b"abc:"[..]), 1..8), 1..200),
        kind in 0..KINDS.len(),
    ) {
        let keys: Vec<Bytes> = keys.into_iter().map(Bytes::from).collect();
        for policy in with_prefixes(kind) {
            let filter = policy.decode(&encoded(&*built(&*policy, keys.clone())));
            for key in &keys {
                prop_assert!(filter.might_match(&point(key)), "{}", policy.name());
                for len in 0..=key.len() {
                    prop_assert!(filter.might_match(&prefix(&key[..len])), "{}", policy.name());
                }
            }
        }
    }

    /// An extractor returning too many bytes causes no denial. SlateDB's policy panics here, as documented.
    #[test]
    fn i1_an_extractor_that_gives_too_many_bytes_leads_to_no_denial(
        keys in btree_set(vec(select(&b"ab"[..]), 0..6), 1..60),
    ) {
        let always_3 = Arc::new(Extractor("always 3", |_, _| Some(3)));
        let policy = ParityFilterPolicy::new(10.0).unwrap().with_prefix_extractor(always_3);
        let keys: Vec<Bytes> = keys.into_iter().map(Bytes::from).collect();
        let filter = built(&policy, keys.clone());
        for key in &keys {
            for len in 0..=key.len() {
                prop_assert!(filter.might_match(&prefix(&key[..len])) && filter.might_match(&point(key)));
            }
        }
    }
}

#[test]
fn prefixes_are_denied_with_an_extractor_and_too_short_ones_are_maybe() {
    for policy in with_prefixes(0) {
        assert!(policy.supports_prefix_queries() && !policy.supports_range_queries());
        let groups =
            (0..500_u32).flat_map(|n| (0..4).map(move |m| Bytes::from(format!("{:03x} {m}", n * 2))));
        let filter = built(&*policy, groups);
        let denied = |odd: u32| !filter.might_match(&prefix(format!("{odd:03x} and more").as_bytes()));
        let count = (0..500).filter(|n| denied(n * 2 + 1)).count();
        assert!(count > 480, "{}: {count} of 500", policy.name());
        assert!(filter.might_match(&prefix(b"zz")) && filter.might_match(&prefix(b"")));
        assert!(!filter.might_match(&point(b"no such key")), "{}", policy.name());
    }
}

#[test]
fn prefixes_that_repeat_take_no_room() {
    for (kind, most) in [(0, 9.2), (2, 9.2), (1, 9.2), (3, 18.0)] {
        let [policy, _] = with_prefixes(kind);
        let keys = (0..10_000).map(|n| Bytes::from(format!("key {n:05}: value")));
        let bits = built(&*policy, keys).size() as f64 * 8.0 / 10_000.0;
        assert!(bits < most && bits > most * 0.9, "{}: {bits}", policy.name());
    }
}
