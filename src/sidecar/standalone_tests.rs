//! Files of stand-alone filters: what is read back, and what is refused.

use super::tests::NO_PREFIXES;
use super::tests::maps;
use super::*;
use crate::all_kinds::{all_kinds, assert_same, takes_keys};
use crate::codec::crc32;
use crate::error::Error;
use crate::filter::format::{HEADER_BYTES, Header};
use crate::filter::{AnyFilter, FilterSpec};
use crate::fs::RealFs;
use std::fs;

#[test]
fn i1_every_kind_comes_back_from_its_file_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    for filter in all_kinds() {
        let path = dir.path().join(filter.name());
        let bytes = write_filter(&path, &filter).unwrap();
        assert_eq!(bytes, fs::metadata(&path).unwrap().len());
        let mut read = read_filter(&path).unwrap();
        assert_same(&filter, &read);
        // A filter that was read back accepts more keys, like the original.
        if takes_keys(&filter) {
            let mut filter = filter.clone();
            assert_eq!(read.insert("new").unwrap(), filter.insert("new").unwrap());
            assert_same(&filter, &read);
        }
    }
}

/// Filters whose files have a header page.
fn kinds_with_pages() -> impl Iterator<Item = AnyFilter> {
    all_kinds().into_iter().filter(|filter| !matches!(filter, AnyFilter::Small(_)))
}

#[test]
fn i6_every_flipped_bit_and_every_cut_of_a_small_filter_s_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let small = all_kinds().pop().unwrap();
    assert_eq!(write_filter(&path, &small).unwrap(), fs::metadata(&path).unwrap().len());
    let whole = fs::read(&path).unwrap();
    let error = |bytes: &[u8], case: &str| {
        fs::write(&path, bytes).unwrap();
        let error = read_filter(&path).expect_err(case).to_string();
        assert!(error.contains("build the filter again") || error.contains("newer version"), "{error}");
        error
    };
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!error(&bytes, &format!("bit {bit}")).contains("format version"));
    }
    (0..whole.len()).for_each(|cut| _ = error(&whole[..cut], &format!("cut at {cut}")));
    assert!(error(&[&whole[..], &[0]].concat(), "grown").contains("trailing data"));
    assert!(error(&[&whole[..], &vec![0; 1 << 20]].concat(), "grown far").contains("trailing data"));
    let mut of_version_2 = whole;
    of_version_2[4] = 0xd2;
    assert!(error(&of_version_2, "another version").contains("format version 2"));
}

#[test]
fn i6_every_changed_byte_and_every_cut_of_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in kinds_with_pages() {
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

/// Impossible parameters are refused even with correct checksums, and nothing is allocated for them.
#[test]
fn i6_impossible_parameters_are_refused_and_never_allocated() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in kinds_with_pages() {
        write_filter(&path, &filter).unwrap();
        let whole = fs::read(&path).unwrap();
        // Sets the kind, the hash, the lines and each parameter to all ones.
        for (at, width) in [(12, 1), (13, 1), (32, 8), (64, 4), (72, 8), (80, 8)] {
            let mut bytes = whole.clone();
            bytes[at..at + width].fill(0xff);
            let crc = crc32(&[&bytes[..HEADER_BYTES - 4]]);
            bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
            fs::write(&path, &bytes).unwrap();
            let error = read_filter(&path).map(drop).unwrap_err();
            match at {
                12 | 13 => {
                    assert!(matches!(&error, Error::UnknownCode { file, .. } if *file == path), "{error}")
                }
                _ => assert!(matches!(error, Error::Corruption { .. }), "{} at {at}: {error}", filter.name()),
            }
        }
    }
}

#[test]
fn a_segment_s_filter_does_not_pass_as_one_that_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("000012.filter");
    let spec = FilterSpec::BlockedBloom { bits_per_key: 10.0 };
    let binding = Binding { segment: 12, digest: 1 };
    create(&RealFs, &path, &[1, 2, 3], spec, 0.into(), Some(binding), NO_PREFIXES).unwrap();
    assert!(matches!(read_filter(&path), Err(Error::InvalidArgument(why)) if why.contains("segment 000012")));
}

#[test]
fn a_filter_of_another_kind_does_not_pass_as_a_segment_s() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    let expect = Expect { binding: Binding { segment: 1, digest: 0 }, hasher: 0.into() };
    for filter in kinds_with_pages().skip(2) {
        write_filter(&path, &filter).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let header = Header { binding: Some(expect.binding), ..Header::decode(&bytes).unwrap() };
        assert!(matches!(header.encode(), Err(crate::filter::Error::Unencodable { .. })));
        bytes[14] = 1; // Bound to segment 1.
        bytes[40] = 1;
        let crc = crate::codec::crc32(&[&bytes[..HEADER_BYTES - 4]]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        let opened = Sidecar::open(&maps(), &path, &expect, Residency::Mapped);
        assert!(matches!(opened, Err(Unusable::Invalid { .. })), "{}", filter.name());
    }
}

#[test]
fn i13_a_temporary_file_of_somebody_else_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (path, theirs) = (dir.path().join("f"), dir.path().join("f.tmp"));
    fs::write(&theirs, "theirs").unwrap();
    for filter in all_kinds() {
        write_filter(&path, &filter).unwrap();
        assert_same(&filter, &read_filter(&path).unwrap());
    }
    assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
