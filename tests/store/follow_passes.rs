//! Following: the store changes while a pass looks at it.

use crate::support::{Contents, OpKind, STORE, Sequence, SimFs, contents, eventually, tiny_on};
use sidebloom::Db;
use sidebloom::fs::Fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

#[test]
fn i6_a_manifest_that_goes_while_a_follower_catches_up_is_missed() {
    let fs = SimFs::new();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    writer.put("a", "1").unwrap();
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let manifest = Path::new(STORE).join("MANIFEST");
    let bytes = fs.read(&manifest).unwrap();
    // It is replaced while a pass looks at it, and gone once that pass has noticed.
    let (path, is_armed) = (manifest.clone(), AtomicBool::new(true));
    let again = bytes.clone();
    fs.before_each(move |fs, kind| match kind {
        OpKind::Inspect if is_armed.load(Ordering::SeqCst) => fs.write(&path, again.clone()),
        OpKind::List if is_armed.swap(false, Ordering::SeqCst) => fs.remove(&path).unwrap(),
        _ => {}
    });
    _ = follower.catch_up();
    assert!(follower.catch_up().is_err(), "there is no manifest");
    fs.write(&manifest, bytes);
    writer.put("b", "2").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), contents(&writer));
}

#[test]
fn i4_the_rows_of_a_log_stay_when_it_is_flushed_while_a_follower_looks() {
    let (fs, sequence) = (SimFs::new(), Sequence(5));
    let writer = tiny_on(&fs).open(STORE).unwrap();
    for i in 1..=2 {
        writer.write(sequence.batch(i)).unwrap();
        writer.flush().unwrap();
    }
    // A pass reads the manifest of a compaction, which still needs the log. Before it lists the directory, the log is flushed.
    let at = Arc::new(Looks::default());
    let (looks, writes, before) = (at.clone(), writer.clone(), fs.publications());
    fs.before_each(move |fs, kind| {
        let is_compaction = thread::current().name() == Some("compaction");
        looks.compacts.fetch_or(is_compaction && kind == OpKind::Read, Ordering::SeqCst);
        if is_compaction || fs.publications() == before || looks.is_busy.swap(true, Ordering::SeqCst) {
            return;
        }
        match (kind, looks.follower.get(), looks.is_flushed.load(Ordering::SeqCst)) {
            (OpKind::List, Some(_), false) => {
                writes.flush().unwrap();
                looks.is_flushed.store(true, Ordering::SeqCst);
            }
            (OpKind::Inspect, Some(follower), true) => looks.found.lock().unwrap().push(contents(follower)),
            _ => {}
        }
        looks.is_busy.store(false, Ordering::SeqCst);
    });
    fs.meter("compaction", 0);
    let compacts = writer.clone();
    let compaction =
        thread::Builder::new().name("compaction".into()).spawn(move || compacts.compact().unwrap());
    eventually("the compaction begins", || at.compacts.load(Ordering::SeqCst));
    writer.write(sequence.batch(3)).unwrap();
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    assert!(at.follower.set(follower.clone()).is_ok());
    fs.meter("nobody", 0);
    compaction.unwrap().join().unwrap();
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), sequence.after(3));
    let found = at.found.lock().unwrap();
    assert!(!found.is_empty(), "looked at while the follower caught up");
    assert!(found.iter().all(|found| *found == sequence.after(3)), "{found:?}");
}

/// What a hook knows and what it has seen.
#[derive(Default)]
struct Looks {
    follower: OnceLock<Db>,
    compacts: AtomicBool,
    is_flushed: AtomicBool,
    is_busy: AtomicBool,
    found: Mutex<Vec<Contents>>,
}
