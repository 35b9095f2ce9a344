//! Filters that are queried in their files.

use super::*;
use crate::all_kinds::all_kinds;
use crate::error::Error;
use crate::filter::format::HEADER_BYTES;
use crate::filter::format::groups::{GROUP_BYTES, GROUP_LINES};
use crate::filter::{AnyFilter, Bloom, FilterSpec, LINE_BYTES, LineFilter, Verdict, Width};
use std::fs;
use std::path::Path;

fn key(i: u64) -> [u8; 8] {
    i.to_le_bytes()
}

/// Filters of 100,000 keys, so of many groups, that can be mapped.
fn large() -> Vec<AnyFilter> {
    let keys: Vec<[u8; 8]> = (0..100_000).map(key).collect();
    let mut bloom = Bloom::new(100_000, 0.01).unwrap();
    keys.iter().for_each(|key| _ = bloom.insert(key).unwrap());
    let parity = LineFilter::build(FilterSpec::Parity { width: Width::Eight }, &keys, 1).unwrap();
    let blocked = FilterSpec::BlockedBloom { bits_per_key: 10.0 };
    let blocked = LineFilter::build(blocked, &keys, 2).unwrap();
    vec![AnyFilter::Bloom(bloom), AnyFilter::Lines(parity), AnyFilter::Lines(blocked)]
}

/// Compares single and batched queries with those of the filter in memory.
fn assert_same_answers(filter: &AnyFilter, mapped: &MappedFilter, keys: std::ops::Range<u64>) {
    let keys: Vec<[u8; 8]> = keys.map(key).collect();
    let expected: Vec<Verdict> = keys.iter().map(|key| filter.contains(key)).collect();
    let one_by_one: Vec<Verdict> = keys.iter().map(|key| mapped.contains(key).unwrap()).collect();
    assert_eq!(one_by_one, expected);
    assert_eq!(mapped.contains_many(&keys).unwrap(), expected);
}

#[test]
fn i1_a_mapped_filter_answers_as_the_one_in_memory_does() {
    let dir = tempfile::tempdir().unwrap();
    for filter in all_kinds().into_iter().chain(large()) {
        let path = dir.path().join("f");
        write_filter(&path, &filter).unwrap();
        let mapped = MappedFilter::open(&path).unwrap();
        assert_eq!(
            (mapped.name(), mapped.keys(), mapped.bytes(), mapped.fpr(), mapped.path()),
            (filter.name(), filter.keys(), filter.bytes(), filter.fpr(), &*path)
        );
        // Group by group, then with all groups verified, by queries or at once.
        assert_same_answers(&filter, &mapped, 0..1000);
        assert_same_answers(&filter, &mapped, 0..200_000);
        assert_same_answers(&filter, &mapped, 0..200_000);
        let mapped = MappedFilter::open(&path).unwrap();
        mapped.verify().unwrap();
        assert_same_answers(&filter, &mapped, 0..200_000);
        mapped.verify().unwrap();
        assert_eq!(mapped.contains_many::<&str>(&[]).unwrap(), []);
    }
}

/// Flips a bit of a file's line.
fn damage(path: &Path, line: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[HEADER_BYTES + line * LINE_BYTES + 5] ^= 4;
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn i6_a_damaged_group_is_an_error_and_the_others_answer() {
    let dir = tempfile::tempdir().unwrap();
    for filter in large() {
        let path = dir.path().join("f");
        write_filter(&path, &filter).unwrap();
        let bad_group = 7;
        damage(&path, bad_group * GROUP_LINES + 9);
        let mapped = MappedFilter::open(&path).unwrap();
        let offset_of = |error: Error| match error {
            Error::Corruption { file, offset, what } if file == path => {
                assert!(what.contains("build the filter again"), "{what}");
                offset
            }
            other => panic!("{other}"),
        };
        let bad_offset = (HEADER_BYTES + bad_group * GROUP_BYTES) as u64;
        let (mut answered, mut refused) = (0, 0);
        for i in 0..100_000 {
            match mapped.contains(key(i)) {
                Ok(verdict) => {
                    assert_eq!(verdict, Verdict::Maybe);
                    answered += 1;
                }
                Err(error) => {
                    assert_eq!(offset_of(error), bad_offset);
                    refused += 1;
                }
            }
        }
        assert!(answered > 70_000 && refused > 0, "{answered} {refused}");
        let keys: Vec<[u8; 8]> = (0..100_000).map(key).collect();
        assert_eq!(offset_of(mapped.contains_many(&keys).unwrap_err()), bad_offset);
        for _ in 0..2 {
            assert_eq!(offset_of(mapped.verify().unwrap_err()), bad_offset);
            assert_eq!(offset_of(mapped.to_memory().unwrap_err()), bad_offset);
        }
    }
}

#[test]
fn i6_what_is_no_filter_is_refused_as_when_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in all_kinds() {
        write_filter(&path, &filter).unwrap();
        let whole = fs::read(&path).unwrap();
        let cases =
            [&whole[..whole.len() - 1], &whole[..3], &[], b"not a filter\n", &[&whole[..], &[0]].concat()];
        for bytes in cases {
            fs::write(&path, bytes).unwrap();
            let [read, mapped] = [read_filter(&path).map(drop), MappedFilter::open(&path).map(drop)];
            assert_eq!(read.unwrap_err().to_string(), mapped.unwrap_err().to_string());
        }
        fs::remove_file(&path).unwrap();
    }
    assert!(matches!(MappedFilter::open(&path), Err(Error::Io { .. })));
    let [read, mapped] = [read_filter(&dir).map(drop), MappedFilter::open(&dir).map(drop)];
    assert_eq!(read.unwrap_err().to_string(), mapped.unwrap_err().to_string());
}

#[test]
fn i1_threads_verify_one_mapped_filter_together() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in large() {
        write_filter(&path, &filter).unwrap();
        let mapped = MappedFilter::open(&path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (filter, mapped) = (&filter, &mapped);
                scope.spawn(move || assert_same_answers(filter, mapped, thread * 10..60_000));
            }
        });
        mapped.verify().unwrap();
        assert_same_answers(&filter, &mapped, 0..110_000);
    }
}

/// A file that another takes the place of stays as it was opened.
#[test]
fn a_mapped_filter_outlives_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    for filter in large() {
        write_filter(&path, &filter).unwrap();
        let mapped = MappedFilter::open(&path).unwrap();
        write_filter(&path, &all_kinds()[0]).unwrap();
        assert_same_answers(&filter, &mapped, 0..150_000);
        fs::remove_file(&path).unwrap();
        assert_same_answers(&filter, &mapped, 0..150_000);
        let copy = mapped.to_memory().unwrap();
        assert_eq!((copy.name(), copy.keys(), copy.fpr()), (filter.name(), filter.keys(), filter.fpr()));
        assert_same_answers(&copy, &mapped, 0..150_000);
    }
}
