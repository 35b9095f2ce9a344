//! What a repository has already is neither read nor copied again.

use super::{REPOSITORY, repository_on, restored_on};
use crate::support::{OpKind, STORE, SimFs, contents, tiny_on};
use sidebloom::FilterPolicy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Reads = Arc<Mutex<BTreeMap<PathBuf, usize>>>;

/// Counts this thread's reads of each file.
fn counting(fs: &SimFs) -> Reads {
    let reads = Reads::default();
    let (counted, mine) = (Arc::clone(&reads), std::thread::current().id());
    fs.before_each(move |_, kind, path| {
        if kind == OpKind::Read && std::thread::current().id() == mine {
            *counted.lock().unwrap().entry(path.to_path_buf()).or_default() += 1;
        }
    });
    reads
}

fn bytes_in(fs: &SimFs, folder: &str) -> u64 {
    let inside = |path: &PathBuf| path.starts_with(folder);
    fs.files().iter().filter(|p| inside(p)).map(|path| fs.read(path).unwrap().len() as u64).sum()
}

#[test]
fn an_unchanged_segment_is_neither_read_nor_copied_again() {
    let fs = SimFs::new();
    let reads = counting(&fs);
    let db = tiny_on(&fs).open(STORE).unwrap();
    let rows = |from: u32| (from..from + 3000).map(|n| Ok((n.to_be_bytes(), [n as u8; 50])));
    db.ingest(rows(0)).unwrap();
    db.wait_for_compaction().unwrap();
    let first = db.backup(&repository_on(&fs)).unwrap();
    let segments = |fs: &SimFs| {
        let is_one =
            |path: &PathBuf| path.starts_with(STORE) && path.extension().is_some_and(|e| e == "segment");
        fs.files().into_iter().filter(is_one).collect::<Vec<_>>()
    };
    let before = segments(&fs);
    assert!(before.len() > 20 && first.new_bytes == first.bytes);

    db.put([0, 0, 0, 5], "changed").unwrap();
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let stored = bytes_in(&fs, &format!("{REPOSITORY}/files"));
    reads.lock().unwrap().clear();
    let second = follower.backup(&repository_on(&fs)).unwrap();
    let reads = reads.lock().unwrap().clone();
    let same: Vec<_> = before.iter().filter(|path| segments(&fs).contains(path)).collect();
    let read_again: Vec<_> = same.iter().filter(|path| reads.contains_key(**path)).collect();
    assert!(same.len() > 20 && read_again.is_empty(), "{second:?} {read_again:?} {reads:?}");
    let of_repository = |path: &&PathBuf| path.starts_with(Path::new(REPOSITORY).join("files"));
    assert_eq!(reads.keys().filter(of_repository).count(), 0);
    // One segment, its filter, and the manifest.
    assert_eq!(bytes_in(&fs, &format!("{REPOSITORY}/files")) - stored, second.new_bytes);
    assert!(second.new_bytes < first.bytes / 4, "{second:?}");
    assert_eq!(contents(&restored_on(&fs, None, super::RESTORED)), contents(&db));
}

#[test]
fn new_filters_alone_are_copied_again() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.ingest((0..3000u32).map(|n| Ok((n.to_be_bytes(), [n as u8; 50])))).unwrap();
    db.wait_for_compaction().unwrap();
    let first = db.backup(&repository_on(&fs)).unwrap();
    db.rebuild_filters(FilterPolicy::bits_per_key(15.0)).unwrap();
    let second = db.backup(&repository_on(&fs)).unwrap();
    assert!(second.new_bytes > 0 && second.files == first.files);
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let third = follower.backup(&repository_on(&fs)).unwrap();
    assert_eq!((third.files, third.new_bytes), (second.files, 0));
    let copy = restored_on(&fs, Some(2), super::RESTORED);
    let bits = |level: &sidebloom::LevelStats| level.filter_bytes;
    assert_eq!(copy.stats().levels.iter().map(bits).sum::<u64>(), db.stats().levels.iter().map(bits).sum());
}

/// A file that was lost or cut short in the repository is copied again, although the last backup has it.
#[test]
fn the_next_backup_heals_files_that_are_missing_or_too_short() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    db.ingest((0..3000u32).map(|n| Ok((n.to_be_bytes(), [n as u8; 50])))).unwrap();
    let repository = repository_on(&fs);
    db.backup(&repository).unwrap();
    let files: Vec<_> =
        fs.files().into_iter().filter(|path| path.starts_with("disk/backups/files")).collect();
    let bytes = fs.read(&files[3]).unwrap();
    fs.write(&files[3], &bytes[..bytes.len() / 2]);
    sidebloom::fs::Fs::remove(&fs, &files[7]).unwrap();
    let report = repository.verify(None).unwrap();
    assert_eq!(report.problems.len(), 2, "{report:?}");
    let healed = db.backup(&repository).unwrap();
    assert!(healed.new_bytes > 0);
    assert!(repository.verify(None).unwrap().is_ok());
    drop(restored_on(&fs, Some(1), super::RESTORED));
}
