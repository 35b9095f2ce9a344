//! Small filters on the wire: round trips, refused streams, and sizes in bytes.

use super::small::{decode, encode};
use super::*;
use crate::codec::{Encode, crc32};
use crate::error::Error;
use crate::{AnyFilter, FilterSpec, KeyHasher, LineFilter, SmallFilter, Width};
use proptest::prelude::*;

const LIMIT: u64 = 1 << 20;

fn small(keys: u64, rate_bits: u32, hasher: KeyHasher) -> SmallFilter {
    SmallFilter::build(rate_bits, (0..keys).map(u64::to_le_bytes), hasher).unwrap()
}

/// The result of `receive_filter` for some bytes.
fn received(mut bytes: &[u8]) -> Result<SmallFilter, Error> {
    match receive_filter(&mut bytes, LIMIT)? {
        AnyFilter::Small(filter) => Ok(filter),
        other => panic!("a {} filter", other.name()),
    }
}

/// Gives changed bytes the right checksum, to reach the checks after it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 4);
    bytes.put_u32(crc32(&[&bytes]));
    bytes
}

proptest! {
    #[test]
    fn what_is_sent_comes_back_and_what_follows_is_left_alone(
        keys in 0u64..500, rate_bits in 1u32..=32, seed: u64, second: u64, sip: bool, after: Vec<u8>,
    ) {
        let hasher = if sip { KeyHasher::siphash13([seed, second]) } else { KeyHasher::from(seed) };
        let filter = small(keys, rate_bits, hasher);
        let mut stream = Vec::new();
        let sent = send_filter(&AnyFilter::Small(filter.clone()), &mut stream).unwrap();
        prop_assert_eq!(sent, stream.len() as u64);
        prop_assert_eq!(&stream, &encode(&filter));
        prop_assert_eq!(&decode(&stream).unwrap(), &filter);
        stream.extend_from_slice(&after);
        let mut input = &stream[..];
        let AnyFilter::Small(received) = receive_filter(&mut input, LIMIT).unwrap() else { panic!() };
        prop_assert_eq!((received, input), (filter, &after[..]));
        prop_assert_eq!(decode(&stream).is_ok(), after.is_empty());
    }

    /// Noise under a right checksum is refused, or it is the encoding of what it decodes to.
    #[test]
    fn i6_noise_under_a_right_checksum_is_refused_or_canonical(
        keys in 0u64..40, rate_bits in 1u32..=12, at: usize, noise in proptest::collection::vec(any::<u8>(), 1..12),
    ) {
        let mut bytes = encode(&small(keys, rate_bits, 1.into()));
        let at = 14 + at % (bytes.len() - 14);
        let end = (at + noise.len()).min(bytes.len());
        bytes.splice(at..end, noise);
        bytes.put_u32(0);
        let bytes = sealed(bytes);
        if let Ok(filter) = decode(&bytes) {
            prop_assert_eq!(encode(&filter), bytes);
        }
    }
}

#[test]
fn i6_every_flipped_bit_and_every_cut_of_a_stream_is_refused() {
    for hasher in [KeyHasher::from(7), KeyHasher::siphash13([7, 8])] {
        for (keys, rate_bits) in [(0, 8), (1, 1), (10, 8), (33, 32), (300, 5)] {
            let mut bytes = encode(&small(keys, rate_bits, hasher));
            for bit in 0..8 * bytes.len() {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(received(&bytes).is_err() && decode(&bytes).is_err(), "{keys} keys, bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            for cut in 0..bytes.len() {
                let refused = received(&bytes[..cut]);
                assert!(matches!(refused, Err(Error::Damaged { .. })), "{keys} keys cut at {cut}");
                assert!(decode(&bytes[..cut]).is_err());
            }
        }
    }
}

/// Impossible fields and other encodings of the values are refused, even with correct checksums. The fields
/// of a filter of ten keys at b = 8 and a seed: keys at 14, rate bits at 15, length at 16, values from 17.
#[test]
fn i6_impossible_fields_and_other_encodings_are_refused() {
    let whole = encode(&small(10, 8, 7.into()));
    assert_eq!((whole[14], whole[15], usize::from(whole[16])), (10, 8, whole.len() - 21));
    let refused = |bytes: Vec<u8>, what: &str| {
        let error = received(&sealed(bytes)).unwrap_err().to_string();
        assert!(error.contains(what) && error.ends_with("send it again"), "{error}");
    };
    let with = |at: std::ops::Range<usize>, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed.splice(at, bytes.iter().copied());
        changed
    };
    refused(with(4..5, &[0xe2]), "invalid version");
    refused(with(5..6, &[2]), "unknown hash 2");
    refused(with(5..6, &[9]), "unknown hash 9, unless a newer version wrote the filter");
    refused(with(14..15, &[0x81, 0x80, 0x04]), "65537 keys in a small filter");
    refused(with(14..15, &[0xff, 0xff, 0xff, 0x01]), "a number of more than 3 bytes");
    refused(with(15..16, &[0]), "a rate of 2^-0");
    refused(with(15..16, &[33]), "a rate of 2^-33");
    refused(with(16..17, &[9]), "9 bytes for 10 values");
    refused(with(16..17, &[14]), "14 bytes for 10 values");
    refused(with(16..17, &[0xff, 0xff, 0x7f]), "2097151 bytes for 10 values");
    // One value more or less than coded, numbers of more bytes than they need, and a bit of the padding.
    refused(with(14..15, &[9]), "invalid coded values");
    refused(with(14..15, &[11]), "invalid coded values");
    refused(with(14..15, &[0x8a, 0]), "invalid coded values");
    refused(with(16..17, &[whole[16] | 0x80, 0]), "invalid coded values");
    let last = whole.len() - 5;
    assert!(whole[last] < 0x80, "the last bit is of the padding");
    refused(with(last..last + 1, &[whole[last] | 0x80]), "invalid coded values");
    let damaged = received(&with(6..7, &[whole[6] ^ 1])).unwrap_err();
    assert!(damaged.to_string().contains("checksum mismatch"), "{damaged}");
    let other = received(&with(4..5, &[0xd2])).unwrap_err();
    assert!(matches!(other, Error::UnsupportedVersion { found: 2, .. }), "{other}");
}

/// A file with a hash that only a newer version knows is refused as such, unless it is damaged.
#[test]
fn i6_a_hash_of_a_newer_version_is_named_unless_it_is_damaged() {
    let mut bytes = encode(&small(10, 8, 7.into()));
    bytes[5] = 9;
    assert!(matches!(decode(&bytes), Err(Error::Damaged { .. })));
    let error = decode(&sealed(bytes)).unwrap_err();
    assert!(matches!(error, Error::UnknownCode { offset: 5, .. }), "{error}");
    assert!(error.to_string().contains("hash code 9"), "{error}");
}

#[test]
fn a_filter_beyond_the_limit_is_refused_before_it_is_read() {
    let bytes = encode(&small(1000, 8, 7.into()));
    let head = &bytes[..20];
    for (max_bytes, fits) in [(7999, false), (8000, true)] {
        match receive_filter(&mut &head[..], max_bytes) {
            Err(Error::TooLarge { bytes: 8000, max }) => assert!(!fits && max == max_bytes),
            Err(Error::Damaged { .. }) => assert!(fits, "the rest is missing"),
            other => panic!("{:?}", other.map(|filter| filter.keys())),
        }
    }
}

/// The largest filter can be decoded, and no filter is encoded to more bytes than a reader reads.
#[test]
fn the_largest_filter_comes_back_and_none_exceeds_what_a_reader_reads() {
    let filter = small(65_536, 32, KeyHasher::siphash13([1, 2]));
    let bytes = encode(&filter);
    assert_eq!(received(&bytes).unwrap(), filter);
    let longest = 4 + 2 + 16 + 3 + 1 + 3 + SmallFilter::coded_lengths(65_536, 32).last().unwrap() + 4;
    assert!(longest <= small::MAX_BYTES as u64);
}

/// The table in the documentation of [`SmallFilter`].
#[test]
fn sizes_on_the_wire_are_those_of_the_documentation() {
    let size = |filter| send_filter(&filter, &mut Vec::new()).unwrap();
    let spec = FilterSpec::Parity { width: Width::Eight };
    for (keys, small_bytes, parity_bytes) in DOCUMENTED {
        let parity = LineFilter::build(spec, (0..keys).map(u64::to_le_bytes), 7).unwrap();
        let found = [AnyFilter::Small(small(keys, 8, 7.into())), AnyFilter::Lines(parity)].map(size);
        println!("{keys} keys: {found:?} bytes");
        // Other keys have other gaps, and a line's spare bits compress differently.
        assert!(found[0].abs_diff(small_bytes) <= 1 + small_bytes / 100, "{keys} keys: {found:?}");
        assert!(found[1].abs_diff(parity_bytes) <= parity_bytes / 20, "{keys} keys: {found:?}");
    }
}

const DOCUMENTED: [(u64, u64, u64); 4] = [(1, 22, 164), (10, 33, 200), (100, 140, 264), (1000, 1217, 1288)];
