use super::*;
use crate::key::MAX_KEY_BYTES;
use proptest::collection::vec;
use proptest::prelude::*;

/// Every key of up to two letters out of three, in order.
fn keys() -> Vec<Vec<u8>> {
    let mut keys = vec![vec![]];
    for a in b'a'..=b'c' {
        keys.push(vec![a]);
        keys.extend((b'a'..=b'c').map(|b| vec![a, b]));
    }
    keys
}

type Deleted = (usize, Option<usize>, Seq);

fn deleted() -> impl Strategy<Value = Vec<Deleted>> {
    let one = (0usize..13, proptest::option::weighted(0.9, 0usize..13), 1u64..20);
    vec(one.prop_filter("not empty", |(from, to, _)| to.is_none_or(|to| *from < to)), 0..8)
}

fn set_of(deleted: &[Deleted]) -> RangeTombstones {
    let (keys, mut set) = (keys(), RangeTombstones::default());
    for (from, to, seq) in deleted {
        let key = |at: usize| Bytes::from(keys[at].clone());
        set = set.merged(&RangeTombstones::of(key(*from), to.map(key), *seq));
    }
    set
}

fn naive(deleted: &[Deleted], at: usize) -> Seq {
    let covers = |(from, to, _): &&Deleted| *from <= at && to.is_none_or(|to| at < to);
    deleted.iter().filter(covers).map(|(_, _, seq)| *seq).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn the_newest_tombstone_of_each_key_counts(deleted in deleted()) {
        let set = set_of(&deleted);
        for (at, key) in keys().iter().enumerate() {
            prop_assert_eq!(set.seq_at(key), naive(&deleted, at));
            let mut span = Span::default();
            set.narrow(key, &mut span);
            prop_assert!(span.has(key.as_slice().into()));
            for (other, key) in keys().iter().enumerate().filter(|(_, key)| span.has(key.as_slice().into())) {
                prop_assert_eq!(span.seq, naive(&deleted, other), "{:?}", key);
            }
        }
        prop_assert_eq!(set.is_empty(), deleted.is_empty());
    }

    #[test]
    fn encoding_comes_back_and_no_other_form_is_accepted(deleted in deleted(), cut in 0usize..40) {
        let (set, mut bytes) = (set_of(&deleted), Vec::new());
        set.encode(&mut bytes);
        prop_assert_eq!(RangeTombstones::decode(&bytes), Some(set.clone()));
        if cut < bytes.len() {
            prop_assert_eq!(RangeTombstones::decode(&bytes[..cut]), None);
            bytes[cut] ^= 1;
            if let Some(other) = RangeTombstones::decode(&bytes) {
                let mut again = Vec::new();
                other.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn a_split_changes_nothing_on_either_side(deleted in deleted(), at in 0usize..13) {
        let mut before = set_of(&deleted);
        let behind = before.split_off(&keys()[at]);
        for (n, key) in keys().iter().enumerate() {
            let expected = naive(&deleted, n);
            prop_assert_eq!(before.seq_at(key), if n < at { expected } else { 0 });
            prop_assert_eq!(behind.seq_at(key), if n < at { 0 } else { expected });
        }
        for part in [before, behind] {
            let mut bytes = Vec::new();
            part.encode(&mut bytes);
            prop_assert_eq!(RangeTombstones::decode(&bytes), Some(part), "canonical");
        }
    }

    #[test]
    fn a_covered_range_has_no_key_left(deleted in deleted(), ends in [0usize..13, 0usize..13], newest in 0u64..20) {
        let (first, last) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let covered = set_of(&deleted).cover(&keys()[first], &keys()[last], newest);
        prop_assert_eq!(covered, (first..=last).all(|at| naive(&deleted, at) > newest));
    }

    #[test]
    fn all_sets_together_are_the_pairwise_union(sets in vec(deleted(), 0..6)) {
        let parts: Vec<RangeTombstones> = sets.iter().map(|set| set_of(set)).collect();
        prop_assert_eq!(RangeTombstones::all(&parts), set_of(&sets.concat()));
    }
}

#[test]
fn bounds_become_the_same_keys() {
    let range = |from, to| DeletedRange::new(from, to).unwrap();
    let whole = range(Bound::Unbounded, Bound::Unbounded).unwrap();
    assert_eq!(whole, DeletedRange { start: vec![], end: None });
    let after = range(Bound::Excluded(b"a"), Bound::Included(b"b")).unwrap();
    assert_eq!(after, DeletedRange { start: b"a\0".to_vec(), end: Some(b"b\0".to_vec()) });
    assert_eq!(range(Bound::Included(b"a"), Bound::Excluded(b"a")), None);
    assert_eq!(range(Bound::Unbounded, Bound::Excluded(b"")), None);
    assert!(matches!(
        DeletedRange::new(Bound::Included(b"b"), Bound::Included(b"a")),
        Err(Error::InvalidRange { .. })
    ));
    let largest = vec![0xff; MAX_KEY_BYTES];
    assert_eq!(range(Bound::Excluded(&largest), Bound::Unbounded), None);
    assert_eq!(range(Bound::Unbounded, Bound::Included(&largest)).unwrap().end, None);
    assert!(matches!(DeletedRange::of_prefix(b""), Err(Error::EmptyPrefix)));
    assert_eq!(DeletedRange::of_prefix(b"\xff").unwrap().end, None);
    let long = vec![0; MAX_KEY_BYTES + 1];
    assert!(matches!(DeletedRange::of_prefix(&long), Err(Error::KeyTooLarge { .. })));
    assert!(matches!(
        DeletedRange::new(Bound::Included(&long), Bound::Unbounded),
        Err(Error::KeyTooLarge { .. })
    ));
}

#[test]
fn nothing_is_between_a_key_and_its_successor() {
    assert_eq!(successor(b"a"), Some(b"a\0".to_vec()));
    let longest = [vec![b'a'; MAX_STORED_KEY_BYTES - 1], vec![0xff]].concat();
    assert_eq!(successor(&longest), Some([vec![b'a'; MAX_STORED_KEY_BYTES - 2], vec![b'b']].concat()));
    assert_eq!(successor(&vec![0xff; MAX_STORED_KEY_BYTES]), None);
}
