//! Tests of the simulated file system itself: what survives, fails and waits.

use crate::support::{Crash, Errno, Fault, OpKind, SimFs};
use sidebloom::fs::{Fs, LockMode};
use sidebloom::{Error, IoOp};
use std::collections::BTreeSet;
use std::path::Path;

const POWER: [Crash; 2] = [Crash::PowerOrdered, Crash::Power];

fn disk() -> SimFs {
    let fs = SimFs::new();
    fs.create_dir(Path::new("d")).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    fs
}

/// A durable name with `synced` durable bytes of 1, followed by unsynced appends of these lengths, of 2, 3,
/// ….
fn file(fs: &SimFs, synced: usize, appends: &[usize]) {
    let mut file = fs.create(Path::new("d/f")).unwrap();
    file.append(&vec![1; synced]).unwrap();
    file.sync().unwrap();
    fs.sync_dir(Path::new("d")).unwrap();
    for (i, &len) in appends.iter().enumerate() {
        file.append(&vec![i as u8 + 2; len]).unwrap();
    }
}

fn contents_after(fs: &SimFs, crash: Crash) -> BTreeSet<Vec<u8>> {
    (0..400).map(|seed| fs.crash(crash, seed).read("d/f").unwrap()).collect()
}

#[test]
fn a_killed_process_loses_nothing_but_its_locks() {
    let fs = disk();
    file(&fs, 10, &[20]);
    let _lock = fs.lock(Path::new("d/LOCK"), LockMode::Exclusive).unwrap();
    let next = fs.crash(Crash::Kill, 0);
    assert_eq!(next.read("d/f"), fs.read("d/f"));
    next.lock(Path::new("d/LOCK"), LockMode::Exclusive).unwrap();
    // What was not durable is still not durable.
    let lost = (0..50).filter(|&seed| next.crash(Crash::Power, seed).read("d/f").unwrap().len() == 10);
    assert!(lost.count() > 0);
}

#[test]
fn synced_bytes_survive_every_power_cut_and_others_only_sometimes() {
    for crash in POWER {
        let fs = disk();
        file(&fs, 700, &[300, 2000]);
        let found = contents_after(&fs, crash);
        assert!(found.iter().all(|bytes| bytes[..700] == vec![1; 700] && bytes.len() <= 3000));
        let lens: BTreeSet<usize> = found.iter().map(Vec::len).collect();
        assert!(lens.contains(&700) && lens.contains(&3000), "{lens:?}");
    }
}

#[test]
fn a_disk_that_keeps_the_order_leaves_prefixes() {
    let fs = disk();
    file(&fs, 700, &[300, 2000]);
    let whole = fs.read("d/f").unwrap();
    assert!(contents_after(&fs, Crash::PowerOrdered).iter().all(|bytes| whole.starts_with(bytes)));
}

/// A disk that does not keep the order leaves each sector as it was after some append, with zeros after it.
#[test]
fn a_disk_that_keeps_no_order_leaves_each_sector_as_of_some_append() {
    let fs = disk();
    file(&fs, 700, &[300, 2000]);
    let whole = fs.read("d/f").unwrap();
    let found = contents_after(&fs, Crash::Power);
    for bytes in &found {
        for (sector, whole) in bytes.chunks(512).zip(whole.chunks(512)) {
            let kept = sector.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            assert_eq!(sector[..kept], whole[..kept]);
        }
        // The sector with the end of the first append: before that append, after it, and after the second.
        let shared = &bytes[512.min(bytes.len())..1024.min(bytes.len())];
        let kept = shared.iter().filter(|&&byte| byte != 0).count();
        assert!([188, 488, 512].contains(&kept), "{kept}");
    }
    let has_hole =
        |bytes: &Vec<u8>| bytes[1024.min(bytes.len())..].windows(2).any(|pair| pair[0] == 0 && pair[1] != 0);
    assert!(found.iter().any(has_hole), "a later sector survives an earlier one");
    assert!(found.iter().any(|bytes| bytes.ends_with(&[0])), "a length survives its bytes");
}

#[test]
fn i8_names_are_durable_once_their_directory_is_synced() {
    for crash in POWER {
        let fs = disk();
        file(&fs, 5, &[]);
        fs.rename(Path::new("d/f"), Path::new("d/g")).unwrap();
        fs.hard_link(Path::new("d/g"), Path::new("d/h")).unwrap();
        let before: BTreeSet<_> = (0..100).map(|seed| fs.crash(crash, seed).files()).collect();
        let subsets = if crash == Crash::Power { 4 } else { 3 };
        assert_eq!(before.len(), subsets, "{before:?}");
        fs.sync_dir(Path::new("d")).unwrap();
        fs.remove(Path::new("d/g")).unwrap();
        let after: BTreeSet<_> = (0..100).map(|seed| fs.crash(crash, seed).files()).collect();
        assert_eq!(after.len(), 2, "{after:?}");
        assert!(after.iter().all(|files| files.contains(&"d/h".into())));
    }
}

#[test]
fn a_crashed_disk_and_the_one_before_do_not_see_each_other() {
    let fs = disk();
    file(&fs, 5, &[]);
    let next = fs.crash(Crash::Kill, 0);
    fs.append(Path::new("d/f")).unwrap().append(b"old").unwrap();
    next.append(Path::new("d/f")).unwrap().append(b"new").unwrap();
    assert!(fs.read("d/f").unwrap().ends_with(b"old"));
    assert!(next.read("d/f").unwrap().ends_with(b"new"));
}

#[test]
fn the_same_seed_gives_the_same_disk() {
    let fs = disk();
    file(&fs, 5, &[4000, 4000, 4000]);
    for seed in 0..20 {
        let [a, b] = [0; 2].map(|_| fs.crash(Crash::Power, seed).read("d/f"));
        assert_eq!(a, b);
    }
}

#[test]
fn i8_a_planned_fault_strikes_the_operation_it_names_and_no_other() {
    let fs = disk();
    fs.fail(Fault::once(OpKind::Sync, 1).with(Errno::NoSpace));
    let mut file = fs.create(Path::new("d/f")).unwrap();
    file.append(b"x").unwrap();
    file.sync().unwrap();
    let error = file.sync().unwrap_err();
    assert!(
        matches!(&error, Error::Io { op: IoOp::Sync, source, .. } if source.raw_os_error() == Some(28)),
        "{error}"
    );
    file.append(b"y").unwrap();
}

#[test]
fn after_a_failed_sync_a_later_one_succeeds_and_makes_nothing_durable() {
    let fs = disk();
    file(&fs, 5, &[]);
    let mut file = fs.append(Path::new("d/f")).unwrap();
    file.append(b"lost").unwrap();
    fs.fail(Fault::once(OpKind::Sync, 0));
    assert!(file.sync().is_err());
    file.sync().unwrap();
    assert!(contents_after(&fs, Crash::Power).iter().any(|bytes| bytes.len() == 5));
}

#[test]
fn a_stopped_disk_refuses_every_write_and_still_reads() {
    let fs = disk();
    file(&fs, 5, &[]);
    fs.fail(Fault::stop(1));
    let mut file = fs.append(Path::new("d/f")).unwrap();
    file.append(b"y").unwrap();
    assert!(file.append(b"z").is_err() && file.sync().is_err());
    assert!(fs.rename(Path::new("d/f"), Path::new("d/g")).is_err());
    assert_eq!(fs.open(Path::new("d/f")).unwrap().len().unwrap(), 6);
    fs.heal();
    file.append(b"z").unwrap();
}

#[test]
fn a_short_append_writes_a_part_and_fails() {
    let fs = disk();
    file(&fs, 5, &[]);
    fs.fail(Fault::once(OpKind::Append, 0).short());
    assert!(fs.append(Path::new("d/f")).unwrap().append(&[9; 100]).is_err());
    assert_eq!(fs.read("d/f").unwrap().len(), 55);
}

#[test]
fn a_full_disk_takes_what_fits_until_there_is_space_again() {
    let fs = disk();
    file(&fs, 5, &[]);
    fs.limit_space(30);
    let mut file = fs.append(Path::new("d/f")).unwrap();
    file.append(&[7; 20]).unwrap();
    let error = file.append(&[8; 20]).unwrap_err();
    assert!(matches!(error, Error::Io { source, .. } if source.raw_os_error() == Some(28)));
    assert_eq!(fs.read("d/f").unwrap().len(), 35);
    fs.heal();
    fs.append(Path::new("d/f")).unwrap().append(&[9; 20]).unwrap();
}

#[test]
fn a_lock_is_exclusive_or_shared_until_it_is_dropped() {
    let fs = disk();
    let path = Path::new("d/LOCK");
    assert!(matches!(fs.lock(path, LockMode::Shared), Err(Error::Io { .. })), "not created for readers");
    let writer = fs.lock(path, LockMode::Exclusive).unwrap();
    assert!(matches!(fs.lock(path, LockMode::Exclusive), Err(Error::Locked { .. })));
    assert!(matches!(fs.lock(path, LockMode::Shared), Err(Error::Locked { .. })));
    drop(writer);
    let [one, two] = [0; 2].map(|_| fs.lock(path, LockMode::Shared).unwrap());
    drop(one);
    assert!(fs.lock(path, LockMode::Exclusive).is_err());
    drop(two);
    assert!(fs.lock(path, LockMode::Exclusive).is_ok());
}

#[test]
fn open_files_outlive_their_names_and_maps_are_what_was_there() {
    let fs = disk();
    file(&fs, 5, &[]);
    let reader = fs.open(Path::new("d/f")).unwrap();
    // SAFETY: the simulated disk copies the bytes.
    let map = unsafe { fs.map(Path::new("d/f")) }.unwrap();
    fs.remove(Path::new("d/f")).unwrap();
    let mut buf = [0; 5];
    reader.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(buf, *map);
    assert!(matches!(reader.read_exact_at(&mut buf, 1), Err(Error::Corruption { offset: 1, .. })));
    assert!(matches!(fs.open(Path::new("d/f")), Err(Error::Io { op: IoOp::Open, .. })));
    assert_eq!(fs.file_len(Path::new("d/f")).unwrap(), None);
    assert_eq!(fs.list(Path::new("d")).unwrap(), Vec::<String>::new());
}

#[test]
fn i8_held_operations_wait_and_others_do_not() {
    let fs = disk();
    file(&fs, 5, &[5]);
    let held = fs.hold(OpKind::Sync);
    let waiting = std::thread::spawn({
        let fs = fs.clone();
        move || fs.append(Path::new("d/f")).unwrap().sync()
    });
    fs.append(Path::new("d/f")).unwrap().append(b"goes on").unwrap();
    assert!(!waiting.is_finished());
    drop(held);
    waiting.join().unwrap().unwrap();
}

#[test]
fn the_log_numbers_the_operations_that_write() {
    let fs = disk();
    file(&fs, 5, &[]);
    assert_eq!(fs.writes(), 6);
    assert_eq!(
        fs.log(),
        "1 create directory d\n2 sync directory \n3 create d/f\n4 write d/f\n5 sync d/f\n6 sync directory d\n"
    );
    assert!(fs.ops() >= fs.writes());
}

/// A directory is durable once its parent is synced. If it is lost, so are its contents.
#[test]
fn a_directory_is_durable_once_its_parent_is_synced_or_lost_as_a_whole() {
    for crash in POWER {
        let fs = disk();
        let (dir, file) = (Path::new("d/new"), Path::new("d/new/f"));
        fs.create_dir(dir).unwrap();
        fs.create(file).unwrap();
        fs.sync_dir(dir).unwrap();
        let found: BTreeSet<_> = (0..50)
            .map(|seed| fs.crash(crash, seed))
            .map(|fs| (fs.file_len(dir).unwrap(), fs.file_len(file).unwrap()))
            .collect();
        assert_eq!(found, BTreeSet::from([(None, None), (Some(0), Some(0))]));

        fs.sync_dir(Path::new("d")).unwrap();
        assert!((0..50).all(|seed| fs.crash(crash, seed).file_len(file).unwrap() == Some(0)));
        fs.remove(file).unwrap();
        fs.remove_dir(dir).unwrap();
        let found: BTreeSet<_> = (0..50).map(|seed| fs.crash(crash, seed).file_len(dir).unwrap()).collect();
        assert_eq!(found, BTreeSet::from([None, Some(0)]), "the removal is not durable yet");
        fs.sync_dir(Path::new("d")).unwrap();
        assert!((0..50).all(|seed| fs.crash(crash, seed).file_len(dir).unwrap().is_none()));
    }
}

#[test]
fn a_directory_needs_its_parent() {
    assert!(matches!(disk().create_dir(Path::new("d/a/b")), Err(Error::Io { .. })));
}
