//! Files and streams of filters that stand alone: what comes back, and what is refused.

use super::format::{HEADER_BYTES, Header};
use super::tests::maps;
use super::*;
use crate::codec::crc32;
use crate::error::Error;
use crate::filter::*;
use crate::fs::RealFs;
use crate::id::FileId;
use proptest::prelude::*;
use std::fs;

const LIMIT: u64 = 1 << 20;

/// One small filter of each kind, and of both hashes.
fn all_kinds() -> Vec<AnyFilter> {
    let keys: Vec<[u8; 8]> = (0..500u64).map(u64::to_le_bytes).collect();
    let mut filters = vec![
        AnyFilter::Lines(LineFilter::build(FilterSpec::Parity { width: Width::Nine }, &keys, 7).unwrap()),
        AnyFilter::Lines(LineFilter::empty_blocked(600, 10.0, 8).unwrap()),
        AnyFilter::Scalable(ScalableBloom::new(20, 0.01).unwrap()),
    ];
    for hash in [HashFunction::Xxh3(9), HashFunction::Murmur3(9), HashFunction::SipHash13([9, 10])] {
        let plan = Plan { hash, ..Plan::new(600, 0.001).unwrap() };
        filters.push(AnyFilter::Bloom(Bloom::with_plan(plan).unwrap()));
        filters.push(AnyFilter::Counting(CountingBloom::with_plan(plan).unwrap()));
    }
    for filter in &mut filters[1..] {
        keys.iter().for_each(|key| assert!(filter.insert(key).is_ok()));
    }
    filters
}

fn assert_same(a: &AnyFilter, b: &AnyFilter) {
    assert_eq!((a.name(), a.keys(), a.bytes(), a.capacity()), (b.name(), b.keys(), b.bytes(), b.capacity()));
    assert_eq!(a.fpr(), b.fpr());
    for i in 0..5000u64 {
        assert_eq!(a.contains(i.to_le_bytes()), b.contains(i.to_le_bytes()));
        assert!(i >= 500 || a.contains(i.to_le_bytes()) == Verdict::Maybe);
    }
}

fn wire(filter: &AnyFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert_eq!(send_filter(filter, &mut bytes).unwrap(), bytes.len() as u64);
    bytes
}

#[test]
fn i1_every_kind_comes_back_from_its_file_and_from_the_wire_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    for filter in all_kinds() {
        let path = dir.path().join(filter.name());
        let bytes = write_filter(&path, &filter).unwrap();
        assert_eq!(bytes, fs::metadata(&path).unwrap().len());
        let mut read = read_filter(&path).unwrap();
        assert_same(&filter, &read);
        assert_same(&filter, &receive_filter(&mut &wire(&filter)[..], LIMIT).unwrap());
        // A filter that was read takes keys as the one that was written did.
        if filter.name() != "parity" {
            let mut filter = filter.clone();
            assert_eq!(read.insert("new").unwrap(), filter.insert("new").unwrap());
            assert_same(&filter, &read);
        }
    }
}

#[test]
fn i6_every_changed_byte_and_every_cut_of_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in all_kinds() {
        write_filter(&path, &filter).unwrap();
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8], case: &str| {
            fs::write(&path, bytes).unwrap();
            let error = read_filter(&path).expect_err(case);
            assert!(matches!(error, Error::Corruption { .. }), "{case}: {error}");
        };
        for at in (0..128).chain([4000, HEADER_BYTES - 1, HEADER_BYTES, whole.len() - 9, whole.len() - 1]) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            refused(&bytes, &format!("{} changed at {at}", filter.name()));
        }
        for cut in [0, 7, 95, HEADER_BYTES - 1, HEADER_BYTES, whole.len() - 1] {
            refused(&whole[..cut], &format!("{} cut at {cut}", filter.name()));
        }
        refused(&[&whole[..], &[0]].concat(), "one byte more");
        refused(b"not a filter\n", "foreign");
    }
}

#[test]
fn i6_impossible_parameters_are_refused_even_under_right_checksums_and_never_allocated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in all_kinds() {
        write_filter(&path, &filter).unwrap();
        let whole = fs::read(&path).unwrap();
        // kind, hash, lines, and each parameter: all ones.
        for (at, width) in [(12, 1), (13, 1), (32, 8), (64, 4), (72, 8), (80, 8)] {
            let mut bytes = whole.clone();
            bytes[at..at + width].fill(0xff);
            let crc = crc32(&[&bytes[..HEADER_BYTES - 4]]);
            bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
            fs::write(&path, &bytes).unwrap();
            let refused = read_filter(&path);
            assert!(matches!(refused, Err(Error::Corruption { .. })), "{} at {at}", filter.name());
        }
    }
}

#[test]
fn a_segment_s_filter_does_not_pass_as_one_that_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000012.filter");
    let spec = FilterSpec::BlockedBloom { bits_per_key: 10.0 };
    let binding = Binding { segment: FileId(12), digest: 1 };
    create(&RealFs, &path, &[1, 2, 3], spec, 0.into(), Some(binding)).unwrap();
    assert!(matches!(read_filter(&path), Err(Error::InvalidArgument(why)) if why.contains("segment 000012")));
}

#[test]
fn a_filter_of_another_kind_does_not_pass_as_a_segment_s() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let expect = Expect { binding: Binding { segment: FileId(1), digest: 0 }, hasher: 0.into() };
    for filter in all_kinds().into_iter().skip(2) {
        write_filter(&path, &filter).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let header = Header { binding: Some(expect.binding), ..Header::decode(&bytes).unwrap() };
        let page = header.encode();
        bytes[..page.len()].copy_from_slice(&page);
        std::fs::write(&path, bytes).unwrap();
        let opened = Sidecar::open(&maps(), &path, &expect, Residency::Mapped);
        assert!(matches!(opened, Err(Unusable::Invalid { .. })), "{}", filter.name());
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
    assert!(matches!(refused, Err(Error::InvalidArgument(why)) if why.contains("limit")));
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
            assert!(matches!(refused, Err(Error::Corruption { .. })), "{} cut at {cut}", filter.name());
        }
        let two = [&whole[..], &whole[..]].concat();
        let mut input = &two[..];
        receive_filter(&mut input, LIMIT).unwrap();
        assert_eq!(input.len(), whole.len());
    }
}

proptest! {
    #[test]
    fn i6_damaged_streams_are_refused(which in 0usize..7, at: usize, flip in 1u8..) {
        let mut bytes = wire(&all_kinds()[which]);
        let at = at % bytes.len();
        bytes[at] ^= flip;
        prop_assert!(receive_filter(&mut &bytes[..], LIMIT).is_err(), "{at}");
    }
}

#[test]
fn a_stream_of_another_version_is_named_and_a_damaged_version_field_is_damage() {
    let whole = wire(&all_kinds()[2]);
    for (version, crc_at) in [(1, 104), (3, 112)] {
        let mut other = whole.clone();
        other[16] = version;
        assert!(matches!(receive_filter(&mut &other[..], LIMIT), Err(Error::Corruption { .. })));
        let crc = crc32(&[&other[..crc_at]]).to_le_bytes();
        other[crc_at..crc_at + 4].copy_from_slice(&crc);
        let error = receive_filter(&mut &other[..], LIMIT).map(|_| ()).unwrap_err();
        let found = u32::from(version);
        assert!(matches!(error, Error::UnsupportedVersion { found: f, .. } if f == found), "{error}");
    }
}
