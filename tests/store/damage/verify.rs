//! `Db::verify` maps no sidecar, and works while other parts of the store replace the files that it reads.

use crate::support::{Fault, Layout, OpKind, STORE, SimFs, fill_deep, tiny_on};
use sidebloom::fs::Fs;
use sidebloom::{Compression, Db, FilterPolicy};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A store of one segment, which is at rest.
fn one_segment() -> (SimFs, Db) {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    (0..10).for_each(|n| db.put(format!("key{n}"), [7; 8]).unwrap());
    db.flush().unwrap();
    db.wait_for_compaction().unwrap();
    (fs, db)
}

fn filters(fs: &SimFs) -> Vec<PathBuf> {
    fs.files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "filter")).collect()
}

/// Runs `act` once, just before this thread opens its n-th file; n, counted from 1, is the returned number. 0
/// means never.
fn before_open(fs: &SimFs, act: impl Fn(&SimFs) + Send + Sync + 'static) -> Arc<AtomicU64> {
    let (countdown, verifier) = (Arc::new(AtomicU64::new(0)), thread::current().id());
    let left = Arc::clone(&countdown);
    fs.before_each(move |fs, kind, _| {
        let is_due = kind == OpKind::Open && thread::current().id() == verifier;
        if is_due
            && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) == Ok(1)
        {
            act(fs);
        }
    });
    countdown
}

/// The checksums of the manifest, of the filter's header and lines, and of the segment.
const OPENS: u64 = 4;

#[test]
fn a_filter_that_is_replaced_while_verify_reads_it_is_not_reported() {
    for open in 1..=OPENS {
        let (fs, db) = one_segment();
        let before: Vec<_> = filters(&fs).into_iter().map(|path| (fs.read(&path).unwrap(), path)).collect();
        db.rebuild_filters(FilterPolicy::bits_per_key(20.0)).unwrap();
        assert!(before.iter().all(|(bytes, path)| fs.read(path).as_ref() != Some(bytes)));
        let countdown =
            before_open(&fs, move |fs| before.iter().for_each(|(bytes, path)| fs.write(path, bytes.clone())));
        countdown.store(open, Ordering::SeqCst);
        let report = db.verify().unwrap();
        assert_eq!(countdown.load(Ordering::SeqCst), 0, "replaced");
        assert!(report.is_ok(), "before opening {open}: {:?}", report.problems);
        assert_eq!((report.unusable_filters, report.filters), (vec![], 1), "before opening {open}");
    }
}

/// A segment that is compacted away while `verify` runs is not reported, nor is its filter.
#[test]
fn a_segment_that_is_compacted_away_while_verify_runs_is_not_reported() {
    for open in 1..=OPENS {
        let (fs, db) = one_segment();
        let compacting = db.clone();
        let countdown = before_open(&fs, move |fs| {
            filters(fs).iter().for_each(|path| Fs::remove(fs, path).unwrap());
            compacting.put("key5", "newer").unwrap();
            compacting.flush().unwrap();
            compacting.compact().unwrap();
        });
        countdown.store(open, Ordering::SeqCst);
        let report = db.verify().unwrap();
        assert_eq!(countdown.load(Ordering::SeqCst), 0, "compacted");
        assert!(report.is_ok(), "before opening {open}: {:?}", report.problems);
        assert_eq!(report.unusable_filters, [""; 0], "before opening {open}");
        assert!(db.verify().unwrap().is_ok());
    }
}

#[test]
fn verify_goes_on_behind_bad_blocks_and_says_what_is_unreadable() {
    let fs = SimFs::new();
    let options = || {
        let options = tiny_on(&fs).compression(Compression::Lz4).block_bytes(256);
        options.segment_bytes(1 << 20).memtable_bytes(1 << 20)
    };
    let db = options().open(STORE).unwrap();
    (0..2000).for_each(|n| db.put(format!("key{n:04}"), [7; 8]).unwrap());
    db.flush().unwrap();
    db.compact().unwrap();
    drop(db);
    let path =
        fs.files().into_iter().find(|path| path.extension().is_some_and(|its| its == "segment")).unwrap();
    let sound = fs.read(&path).unwrap();
    let blocks = Layout::of(&sound).data;
    assert!(blocks.len() > 50);
    // Two neighbours, one alone, and the last one.
    let mut bytes = sound.clone();
    for bad in [3, 4, 20, blocks.len() - 1] {
        bytes[blocks[bad].bytes.start + 9] ^= 4;
    }
    fs.write(&path, bytes);
    let db = options().read_only(true).open(STORE).unwrap();
    let unreadable = (0..2000).filter(|n| db.get(format!("key{n:04}")).is_err()).count() as u64;
    let report = db.verify().unwrap();
    assert!(unreadable > 4 && report.unreadable_entries == unreadable, "{unreadable}: {report:?}");
    assert_eq!((report.entries, report.unreadable_blocks), (2000 - unreadable, 4));
    let problems: Vec<_> = report.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "three places and the sum: {problems:?}");
    for (problem, blocks) in problems.iter().zip(["2 blocks", "one block", "one block"]) {
        assert!(
            problem.contains(&format!("not readable: {blocks} with keys greater than \"key")),
            "{problem}"
        );
    }
    assert!(problems[3].contains(&format!("{unreadable} of 2000 entries are not readable")), "{problems:?}");
}

/// Verification reads sidecars and maps none, so that a failing disk is a finding and no signal.
#[test]
fn verification_maps_no_sidecar_so_a_failing_disk_is_a_finding() {
    let fs = SimFs::new();
    let db = tiny_on(&fs).open(STORE).unwrap();
    fill_deep(&db, 6);
    fs.fail(Fault { forever: true, ..Fault::once(OpKind::Map, 0) });
    let report = db.verify().unwrap();
    assert!(report.is_ok() && report.filters == report.segments && report.filters > 0, "{report:?}");
}
