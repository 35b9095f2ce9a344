//! The order of keys, and their prefixes.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #[test]
    fn prefix8_never_contradicts_the_order_of_keys(a: Vec<u8>, b: Vec<u8>) {
        if prefix8(&a) < prefix8(&b) {
            prop_assert!(a < b);
        }
    }

    #[test]
    fn split_keys_are_ordered_as_whole_keys_wherever_they_are_split(
        a in "[ab]{0,20}", b in "[ab]{0,20}", at in 0usize..21, bt in 0usize..21,
    ) {
        let split = |key: &'_ str, at: usize| (key.as_bytes()[..at.min(key.len())].to_vec(), key.as_bytes()[at.min(key.len())..].to_vec());
        let ((ah, at), (bh, bt)) = (split(&a, at), split(&b, bt));
        let (x, y) = (SplitKey::new(&ah, &at), SplitKey::new(&bh, &bt));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.cmp_bytes(b.as_bytes()), a.cmp(&b));
        prop_assert!(x.front() >= y.front() || a < b, "the front contradicts the order");
        prop_assert_eq!(x.to_vec(), a.as_bytes());
        let mut buffer = Vec::new();
        prop_assert_eq!(x.lend(&mut buffer), a.as_bytes());
        prop_assert_eq!(y.lend(&mut buffer), b.as_bytes(), "a buffer that may be longer");
    }

    #[test]
    fn prefixes_are_the_padded_first_bytes(key in vec(any::<u8>(), 0..20)) {
        let padded = [&key[..], &[0; 16]].concat();
        prop_assert_eq!(&prefix8(&key).to_be_bytes()[..], &padded[..8]);
        prop_assert_eq!(&prefix16(&key).to_be_bytes()[..], &padded[..16]);
    }

    #[test]
    fn common_prefix_is_the_naive_count(a in "[ab]{0,40}", b in "[ab]{0,40}") {
        let naive = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
        prop_assert_eq!(common_prefix(a.as_bytes(), b.as_bytes()), naive);
    }

    #[test]
    fn prefix_end_bounds_exactly_the_keys_with_the_prefix(
        prefix in vec(select(&[0, 7, 0xfe, 0xff]), 0..4),
        key in vec(select(&[0, 7, 8, 0xfe, 0xff]), 0..6),
    ) {
        let within = key >= prefix && prefix_end(&prefix).is_none_or(|end| key < end);
        prop_assert_eq!(within, key.starts_with(&prefix));
    }
}
