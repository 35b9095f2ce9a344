//! Damaged filter blocks: the key is found, or RocksDB reports an error. It is never "not found".

use crate::support::{Store, key, options_of, sst_files, value};
use rocksdb::{BlockBasedOptions, ChecksumType, DB};
use std::os::unix::fs::FileExt;

const KEYS: u32 = 3_000;

/// The end of a file's filter block, found by the magic in its trailer.
fn filter_end(file: &[u8]) -> usize {
    let at = file.windows(4).position(|window| window == b"sbpf").unwrap();
    assert!(file[at + 4..].windows(4).all(|window| window != b"sbpf"), "one filter");
    at + 52
}

fn write_store(dir: &std::path::Path, table: &BlockBasedOptions) -> (std::path::PathBuf, Vec<u8>) {
    let store = Store::with_table(dir, table, "sidebloom.parity:8");
    store.put(0..KEYS);
    store.compact();
    let files = sst_files(dir);
    assert_eq!(files.len(), 1);
    let bytes = std::fs::read(&files[0]).unwrap();
    (files[0].clone(), bytes)
}

fn without_checksums() -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_checksum_type(ChecksumType::NoChecksum);
    table
}

#[test]
fn i6_a_damaged_filter_never_hides_a_key_even_without_rocksdb_s_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let table = without_checksums();
    let (path, bytes) = write_store(dir.path(), &table);
    let end = filter_end(&bytes);
    let start = end - 52 - 26 * 64;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    for round in 0..400 {
        // Every byte of the trailer, and some of the lines; one bit, zeros, or noise.
        let at = if round < 52 { end - 52 + round } else { rng.usize(start..end) };
        let length = if round % 3 == 0 { rng.usize(1..200).min(end - at) } else { 1 };
        let damage: Vec<u8> = match round % 4 {
            0 => vec![0; length],
            1 => bytes[at..at + length].iter().map(|byte| byte ^ 1 << rng.u8(..8)).collect(),
            _ => (0..length).map(|_| rng.u8(..)).collect(),
        };
        file.write_all_at(&damage, at as u64).unwrap();
        let db =
            DB::open_for_read_only(&options_of(&table, "sidebloom.parity:8"), dir.path(), false).unwrap();
        for number in (0..KEYS).step_by(14) {
            assert_eq!(db.get(key(number)).unwrap(), value(number), "{number}, damage at {at}");
        }
        file.write_all_at(&bytes[at..at + length], at as u64).unwrap();
    }
}

#[test]
fn i6_with_checksums_damage_is_rocksdb_s_error_or_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let table = BlockBasedOptions::default();
    let (path, bytes) = write_store(dir.path(), &table);
    let end = filter_end(&bytes);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let mut opened = 0;
    for at in (end - 52 - 26 * 64..end + 5).step_by(41) {
        file.write_all_at(&[!bytes[at]], at as u64).unwrap();
        let options = options_of(&table, "sidebloom.parity:8");
        if let Ok(db) = DB::open_for_read_only(&options, dir.path(), false) {
            opened += 1;
            for number in (0..KEYS).step_by(14) {
                match db.get(key(number)) {
                    Ok(found) => assert_eq!(found, value(number), "{number}, damage at {at}"),
                    Err(error) => assert!(error.to_string().contains("Corruption"), "{error}"),
                }
            }
        }
        file.write_all_at(&[bytes[at]], at as u64).unwrap();
    }
    assert!(opened > 0, "no damaged store could be opened, so nothing was read");
}
