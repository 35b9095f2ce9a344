//! A store with several levels and a log, in which some bytes are wrong but the checksums are correct, as a
//! faulty build could write it. Opening and reading either succeed or return an error.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sidebloom::internal::fuzz::segment_format::FOOTER_BYTES;
use sidebloom::{Db, Error, Options};
use sidebloom_fuzz::disk::{Crash, SimFs};
use sidebloom_fuzz::repair;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

const STORE: &str = "disk/store";
const KEYS: u64 = 100;

#[derive(Debug, Arbitrary)]
struct Input {
    read_only: bool,
    changes: Vec<Change>,
}

#[derive(Debug, Arbitrary)]
struct Change {
    file: u8,
    /// Counted from the end, where footers, last edits and last records are.
    before_end: u16,
    bytes: [u8; 4],
}

fn options(fs: &SimFs) -> Options {
    Options::new().memtable_bytes(4096).segment_bytes(4096).block_bytes(256).filesystem(Arc::new(fs.clone()))
}

fn key(n: u64) -> String {
    format!("key {:03}", n * 7 % KEYS)
}

/// 56 bytes, mostly noise.
fn value(n: u64) -> Vec<u8> {
    (1..8u64).flat_map(|i| (n + i * i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// The files of a store whose process was killed: two segments in level 1, two in level 0, and a log.
static FILES: LazyLock<Vec<(PathBuf, Vec<u8>)>> = LazyLock::new(|| {
    let fs = SimFs::new();
    let db = options(&fs).open(STORE).unwrap();
    for n in 0..180 {
        match n % 5 {
            0 => db.delete(key(n)).unwrap(),
            _ => db.put(key(n), value(n)).unwrap(),
        }
        match n {
            130 => db.compact().unwrap(),
            145 | 160 => db.flush().unwrap(),
            _ => {}
        }
    }
    let levels: Vec<_> = db.stats().levels.iter().map(|level| level.segments).collect();
    assert_eq!(levels, [2, 2]);
    let left = fs.crash(Crash::Kill, 0);
    let files = left.files().into_iter();
    files.filter_map(|path| left.read(&path).map(|bytes| (path, bytes))).collect()
});

fuzz_target!(|input: Input| {
    let fs = SimFs::new();
    sidebloom::fs::create_dir_durably(&fs, Path::new(STORE)).unwrap();
    let mut files = FILES.clone();
    for Change { file, before_end, bytes } in input.changes.iter().take(16) {
        let which = usize::from(*file) % files.len();
        let contents = &mut files[which].1;
        if contents.is_empty() {
            continue;
        }
        let at = contents.len() - 1 - usize::from(*before_end) % contents.len();
        contents.iter_mut().skip(at).zip(bytes).for_each(|(byte, change)| *byte ^= change);
    }
    for ((path, mut bytes), (_, before)) in files.into_iter().zip(&*FILES) {
        let kind = path.extension().or(path.file_name()).and_then(|name| name.to_str()).unwrap_or_default();
        _ = match kind {
            "MANIFEST" => repair::manifest(&mut bytes),
            "wal" => repair::wal(&mut bytes),
            "segment" => {
                let digest = before[before.len() - FOOTER_BYTES + 24..].first_chunk();
                repair::segment(&mut bytes, digest.map(|digest| u64::from_le_bytes(*digest)))
            }
            "filter" => {
                let lines = bytes.len() - 8;
                let compact = [&bytes[..96], &bytes[4096..lines]].concat();
                repair::sidecar(&compact).map(|repaired| bytes = repaired)
            }
            _ => None,
        };
        fs.write(path, bytes);
    }
    let opened = options(&fs).read_only(input.read_only).open(STORE);
    if let Some(db) = expected(opened) {
        use_it(&db);
    }
});

/// Checks that an error is one that a damaged store may cause.
fn expected<T>(result: sidebloom::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Corruption { .. } | Error::UnsupportedVersion { .. } | Error::UnknownCode { .. }) => None,
        Err(Error::NotAStore { .. }) => None,
        // A write after a compaction that met damage.
        Err(Error::Poisoned { .. } | Error::ReadOnly) => None,
        // A log or manifest that names an existing file of another kind, and a block compressed with zstd.
        Err(Error::Io { .. } | Error::FeatureMissing { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn use_it(db: &Db) {
    for n in 0..40 {
        expected(db.get(key(n)));
    }
    db.iter().for_each(|kv| drop(expected(kv)));
    db.iter().rev().take(50).for_each(|kv| drop(expected(kv)));
    let stats = db.stats();
    assert!(stats.levels.iter().all(|level| level.expected_fpr >= 0.0));
    expected(db.verify());
    expected(db.put("new", "value"));
    expected(db.flush());
    expected(db.compact());
    expected(db.get("new"));
}
