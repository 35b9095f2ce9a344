//! Many segments that only change their level, and writes that wait for a compaction.

use super::compaction::{Compaction, CompactionKind};
use super::reservation::Reservation;
use crate::fs::RealFs;
use crate::manifest::{Manifest, Place, read_state};
use crate::support::{eventually, fast_dir};
use crate::{Compression, Result};
use crate::{Db, KeyspaceOptions, Options, WriteStall};
use std::path::Path;
use std::sync::Arc;

fn options() -> Options {
    Options::new().segment_bytes(4096).compression(Compression::None)
}

/// Makes a store with this number of rows of 1,000 bytes, three or four per segment, all in this level.
fn store_in_level(path: &Path, rows: u32, level: u8) -> usize {
    let db = options().open(path).unwrap();
    db.ingest((0..rows).map(|row| Ok((format!("key{row:06}"), [b'x'; 1000])))).unwrap();
    drop(db);
    let mut state = read_state(&RealFs, path).unwrap();
    state.segments.values_mut().for_each(|meta| meta.place = Place::Level(level));
    Manifest::create(Arc::new(RealFs), path, &state).unwrap();
    state.segments.len()
}

#[test]
fn segments_that_only_move_go_in_a_few_edits_of_the_manifest() {
    for level in [0, 1] {
        let dir = fast_dir();
        let path = dir.path().join("store");
        let segments = store_in_level(&path, 2000, level);
        assert!(segments >= 400, "{segments}");
        let db = options().open(&path).unwrap();
        db.wait_for_compaction().unwrap();
        let edits = db.engine().shared.view_number();
        assert!(edits < 20, "{edits} changes of the view for {segments} segments in level {level}");
        let stats = db.stats();
        assert!(stats.levels[0].segments == 0 && stats.levels[3].segments > 300, "{:?}", stats.levels);
        assert_eq!(stats.compaction_bytes, 0);
        assert_eq!(db.iter().count().unwrap(), 2000);
        assert!(db.verify().unwrap().is_ok());
    }
}

#[test]
fn after_a_repair_without_a_manifest_the_first_write_waits_for_nothing() -> Result<()> {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = options().open(&path)?;
    db.ingest((0..2000).map(|row| Ok((format!("key{row:06}"), [b'x'; 1000]))))?;
    db.delete("key000007")?;
    db.delete_range("key000100".."key000200")?;
    db.flush()?;
    db.put("key000150", "again")?;
    drop(db);
    std::fs::remove_file(path.join("MANIFEST")).unwrap();
    assert!(crate::repair(&path)?.rebuilt);
    let found = read_state(&RealFs, &path)?;
    let in_level0 = found.segments.values().filter(|meta| meta.place == Place::Level(0)).count();
    assert!(in_level0 <= 1, "{in_level0} of {} segments", found.segments.len());
    let db = options().open(&path)?;
    db.put("a", "b")?;
    assert_eq!(db.stats().stall_micros, 0);
    for round in ["repaired", "compacted"] {
        assert_eq!(db.get("key000007")?, None, "{round}");
        assert_eq!(db.get("key000199")?, None, "{round}");
        assert_eq!(db.get("key000150")?.as_deref(), Some(b"again".as_slice()), "{round}");
        assert_eq!(db.iter().count()?, 2000 - 1 - 100 + 2, "{round}");
        db.compact()?;
    }
    assert!(db.verify()?.is_ok());
    Ok(())
}

#[test]
fn a_repaired_store_prefers_a_segment_to_an_older_operation_in_a_log() -> Result<()> {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = options().open(&path)?;
    db.put("key", "old")?;
    db.sync()?;
    let is_log = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".wal");
    let mut names = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
    let log = path.join(names.find(is_log).unwrap());
    let old = std::fs::read(&log).unwrap();
    db.put("key", "new")?;
    db.compact()?;
    drop(db);
    std::fs::write(log, old).unwrap();
    std::fs::remove_file(path.join("MANIFEST")).unwrap();
    crate::repair(&path)?;
    let db = options().open(&path)?;
    db.put("other", "value")?;
    for round in ["repaired", "flushed", "compacted"] {
        assert_eq!(db.get("key")?.as_deref(), Some(b"new".as_slice()), "{round}");
        if round == "repaired" { db.flush()? } else { db.compact()? }
    }
    Ok(())
}

#[test]
fn a_write_that_waits_for_a_compaction_says_so() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let db = Db::open(&path).unwrap();
    db.put("key", "value").unwrap();
    // As if a full compaction ran all the time.
    db.flush().unwrap();
    let live = db.engine().shared.live();
    let elsewhere = Reservation::of(live.levels()[0].segments().iter(), 1).unwrap();
    db.engine().shared.control.lock().compactions.running.push(elsewhere.clone());
    while db.engine().shared.live().levels()[0].segments().len() < 36 {
        db.put("key", "value").unwrap();
        db.flush().unwrap();
    }
    assert_eq!(db.stats().write_stall, None);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| db.put("key", "last"));
        eventually("it reports the stall", || db.stats().write_stall == Some(WriteStall::Compaction));
        let mut control = db.engine().shared.control.lock();
        control.compactions.running.retain(|running| *running != elsewhere);
        control.finished += 1;
        drop(control);
        db.engine().shared.wake_workers();
        writer.join().unwrap().unwrap();
    });
    assert_eq!(db.stats().write_stall, None);
    assert_eq!(db.get("key").unwrap().as_deref(), Some(b"last".as_slice()));
}

/// A segment that keyspaces share may have more of one by the time it leaves level 0.
#[test]
fn what_keyspaces_share_is_not_only_moved_out_of_level_0() {
    let dir = fast_dir();
    let options = Options::new().segment_bytes(64 << 10).compression(Compression::None);
    let db = Options { level0_trigger: usize::MAX, ..options }.open(dir.path()).unwrap();
    let keyspaces = ["large", "b", "c"].map(|name| db.create_keyspace(name, KeyspaceOptions::new()).unwrap());
    for (keyspace, rows) in keyspaces.iter().zip([200u32, 1, 1]) {
        (0..rows).for_each(|i| keyspace.put(i.to_be_bytes(), [7; 100]).unwrap());
    }
    db.flush().unwrap();
    let live = db.engine().shared.live();
    let shared = live.segments().filter(|s| s.meta.owner().is_none()).count();
    assert_eq!((live.level0_depth(), live.segments().count(), shared), (1, 3, 1));
    for segment in live.segments() {
        let kind = Compaction::down(&live, vec![segment.clone()], 1, &[]).unwrap().kind;
        let is_moved = kind == CompactionKind::Move;
        assert_eq!(is_moved, segment.meta.owner().is_some(), "{:?}", segment.meta);
    }
    let keys = keyspaces.map(|keyspace| keyspace.stats().unwrap().keys);
    assert_eq!(keys, [200, 0, 0]);
}
