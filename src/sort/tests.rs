use super::*;
use crate::fs::RealFs;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

fn check<R: Record + Debug>(records: impl Iterator<Item = R>, memory_bytes: usize) {
    let dir = tempfile::tempdir().unwrap();
    let mut sorter = ExternalSorter::new(Arc::new(RealFs), dir.path().join("sort"), memory_bytes);
    let mut expected = BTreeMap::new();
    for record in records {
        *expected.entry(record).or_insert(0) += 1;
        sorter.push(record).unwrap();
    }
    assert_eq!(sorter.len(), expected.values().sum::<u64>());
    let expected: Vec<(R, u64)> = expected.into_iter().collect();
    for pass in 0..2 {
        let found: Vec<_> = sorter.counted().unwrap().map(Result::unwrap).collect();
        assert_eq!(found, expected, "pass {pass} in {memory_bytes} bytes");
    }
    assert!(std::fs::read_dir(dir.path()).unwrap().count() <= 1, "one file for all chunks");
    drop(sorter);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file is removed");
}

#[test]
fn records_come_out_sorted_and_counted_whether_they_fit_in_memory_or_not() {
    for memory_bytes in [16, 1000, 4096, 100_000, 1 << 20] {
        for records in [0, 1, 100, 20_000u64] {
            if records > 100 && memory_bytes < 1000 {
                continue; // A chunk for every record; a hundred will do.
            }
            let hash = |i: u64| crate::hash::hash_key(&(i % 7000 * (i % 3)).to_le_bytes(), 5);
            check((0..records).map(hash), memory_bytes);
            check((0..records).map(|i| u128::from(hash(i)) << (i % 64)), memory_bytes);
            check(0..records, memory_bytes);
            check((0..records).rev(), memory_bytes);
            check((0..records).map(|i| i / 9000), memory_bytes); // Equal records beyond a merge's buffer.
        }
    }
}

#[test]
fn a_damaged_chunk_is_an_error_that_names_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sort");
    let mut sorter = ExternalSorter::new(Arc::new(RealFs), &path, 800);
    (0..250u64).for_each(|i| sorter.push(i * i).unwrap());
    assert_eq!(sorter.counted().unwrap().count(), 250);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[880] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = sorter.counted().unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
}

#[test]
fn zeros_at_the_end_of_a_buffer_are_an_error_and_not_an_early_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sort");
    let mut sorter = ExternalSorter::new(Arc::new(RealFs), &path, 16 << 10);
    (0..4096u64).for_each(|i| sorter.push(i + 1).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3072..4096].fill(0);
    std::fs::write(&path, bytes).unwrap();
    assert!(sorter.counted().unwrap().any(|record| record.is_err()));
}
