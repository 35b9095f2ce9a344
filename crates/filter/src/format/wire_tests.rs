//! Filters on the wire: what is read back, and what is refused.

use super::*;
use crate::all_kinds::{all_kinds, assert_same, takes_keys};
use crate::codec::crc32;
use crate::error::Error;
use crate::{AnyFilter, Bloom};
use proptest::prelude::*;

const LIMIT: u64 = 1 << 20;

fn wire(filter: &AnyFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert_eq!(send_filter(filter, &mut bytes).unwrap(), bytes.len() as u64);
    bytes
}

#[test]
fn i1_every_kind_comes_back_from_the_wire_and_goes_on() {
    for filter in all_kinds() {
        let mut received = receive_filter(&mut &wire(&filter)[..], LIMIT).unwrap();
        assert_same(&filter, &received);
        // A received filter accepts keys like the original.
        if takes_keys(&filter) {
            let mut filter = filter.clone();
            assert_eq!(received.insert("new").unwrap(), filter.insert("new").unwrap());
            assert_same(&filter, &received);
        }
    }
}

#[test]
fn sparse_filters_shrink_on_the_wire_and_the_limit_is_kept() {
    let mut sparse = Bloom::new(1_000_000, 0.01).unwrap();
    (0..5000u64).for_each(|i| assert!(sparse.insert(i.to_le_bytes()).is_ok()));
    let sparse = AnyFilter::Bloom(sparse);
    let sent = wire(&sparse);
    assert!((sent.len() as u64) < sparse.bytes() / 20, "{} of {}", sent.len(), sparse.bytes());
    assert_same_bits(&sparse, &receive_filter(&mut &sent[..], sparse.bytes()).unwrap());
    let refused = receive_filter(&mut &sent[..], sparse.bytes() - 1);
    assert!(
        matches!(refused, Err(Error::TooLarge { bytes, max }) if bytes == sparse.bytes() && max == bytes - 1)
    );
}

fn assert_same_bits(a: &AnyFilter, b: &AnyFilter) {
    let (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) = (a, b) else { unreachable!() };
    assert!(a == b);
}

#[test]
fn i6_every_cut_of_a_stream_is_refused_and_what_follows_it_is_left_alone() {
    for filter in all_kinds() {
        let whole = wire(&filter);
        for cut in (0..whole.len()).step_by(13) {
            let refused = receive_filter(&mut &whole[..cut], LIMIT);
            assert!(matches!(refused, Err(Error::Damaged { .. })), "{} cut at {cut}", filter.name());
        }
        let two = [&whole[..], &whole[..]].concat();
        let mut input = &two[..];
        receive_filter(&mut input, LIMIT).unwrap();
        assert_eq!(input.len(), whole.len());
    }
}

proptest! {
    #[test]
    fn i6_damaged_streams_are_refused(which in 0usize..10, at: usize, flip in 1u8..) {
        let mut bytes = wire(&all_kinds()[which]);
        let at = at % bytes.len();
        bytes[at] ^= flip;
        prop_assert!(receive_filter(&mut &bytes[..], LIMIT).is_err(), "{at}");
    }
}

/// The kind is at 20 of the stream, the hash at 21. Kind 1 and hash 0 belong to no version with this header.
#[test]
fn i6_a_kind_or_hash_of_a_newer_version_is_named_unless_damaged() {
    let whole = wire(&all_kinds()[2]);
    for (at, code, what) in [
        (20, 8, Some("filter kind 8")),
        (20, 255, Some("filter kind 255")),
        (21, 5, Some("hash code 5")),
        (20, 1, None),
        (21, 0, None),
    ] {
        let mut other = whole.clone();
        other[at] = code;
        let refused = |bytes: &[u8]| receive_filter(&mut &bytes[..], LIMIT).map(|_| ()).unwrap_err();
        assert!(matches!(refused(&other), Error::Damaged { .. }), "byte {at} is {code}");
        let crc = crc32(&[&other[..120]]).to_le_bytes();
        other[120..124].copy_from_slice(&crc);
        match (refused(&other), what) {
            (error @ Error::UnknownCode { .. }, Some(what)) => {
                let text = format!(
                    "has {what} at offset {at}, which this version does not know: it was written by a newer version"
                );
                assert!(error.to_string().contains(&text), "{error}");
            }
            (Error::Damaged { .. }, None) => {}
            (error, _) => panic!("byte {at} is {code}: {error}"),
        }
    }
}

/// The error for a stream of another version names it; a damaged version field is reported as damage.
#[test]
fn another_version_is_named_and_a_damaged_version_field_is_damage() {
    let whole = wire(&all_kinds()[2]);
    for (version, crc_at) in [(1, 104), (2, 112), (3, 120), (5, 120)] {
        let mut other = whole.clone();
        other[16] = version;
        assert!(matches!(receive_filter(&mut &other[..], LIMIT), Err(Error::Damaged { .. })));
        let crc = crc32(&[&other[..crc_at]]).to_le_bytes();
        other[crc_at..crc_at + 4].copy_from_slice(&crc);
        let error = receive_filter(&mut &other[..], LIMIT).map(|_| ()).unwrap_err();
        let found = u32::from(version);
        assert!(matches!(error, Error::UnsupportedVersion { found: f, .. } if f == found), "{error}");
    }
}
