//! Following: the store changes during a pass over its files.

use crate::support::{Contents, OpKind, STORE, SimFs, contents, eventually, promptly, tiny_on};
use sidebloom::Db;
use sidebloom::fs::Fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn i6_a_manifest_that_goes_while_a_follower_catches_up_is_missed() {
    let fs = SimFs::new();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    writer.put("a", "1").unwrap();
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let manifest = Path::new(STORE).join("MANIFEST");
    let bytes = fs.read(&manifest).unwrap();
    // It is replaced during a pass, and gone once that pass has noticed.
    let (path, is_armed) = (manifest.clone(), AtomicBool::new(true));
    let again = bytes.clone();
    fs.before_each(move |fs, kind, _| match kind {
        OpKind::Inspect if is_armed.load(SeqCst) => fs.write(&path, again.clone()),
        OpKind::List if is_armed.swap(false, SeqCst) => fs.remove(&path).unwrap(),
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
    let fs = SimFs::new();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    let follower = tiny_on(&fs).follow(true).open(STORE).unwrap();
    let (before, at) = (fs.publications(), Arc::new(Looks::default()));
    let looks = at.clone();
    fs.before_each(move |fs, kind, _| {
        let wait_until =
            |it: &dyn Fn() -> bool| (0..).take_while(|_| !it()).for_each(|_| thread::yield_now());
        let is_worker = thread::current().name().is_some_and(|name| name.ends_with(char::is_numeric));
        let flushed = fs.publications() - before;
        match kind {
            OpKind::Create if is_worker => wait_until(&|| looks.begins.load(SeqCst)),
            // The second flush, which needs the second log, is published once a pass read the first's
            // manifest.
            OpKind::Append if flushed == 1 => wait_until(&|| looks.lists.load(SeqCst)),
            OpKind::Open if flushed == 1 && !is_worker => looks.reads.store(true, SeqCst),
            // The pass lists the directory once the second log is gone.
            OpKind::List if !is_worker && looks.reads.load(SeqCst) => {
                looks.lists.store(true, SeqCst);
                wait_until(&|| logs(fs) == 1);
            }
            OpKind::Inspect if looks.lists.load(SeqCst) => looks.look(),
            _ => {}
        }
    });
    let mut expected = Contents::new();
    // Three logs have rows.
    for at_least in [2, 3, 0] {
        loop {
            let key = format!("key{}", expected.len()).into_bytes();
            writer.put(&key, [7; 1000]).unwrap();
            expected.insert(key, vec![7; 1000]);
            if logs(&fs) >= at_least {
                break;
            }
        }
    }
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), expected);
    *at.follower.lock().unwrap() = Some(follower.clone());
    at.begins.store(true, SeqCst);
    eventually("the logs are flushed", || logs(&fs) == 1);
    follower.catch_up().unwrap();
    assert_eq!(contents(&follower), expected);
    at.follower.lock().unwrap().take();
    let found = at.found.lock().unwrap();
    assert!(!found.is_empty(), "looked at while the follower caught up");
    assert!(found.iter().all(|found| *found == expected), "rows are gone for a moment");
}

fn logs(fs: &SimFs) -> usize {
    fs.files().iter().filter(|path| path.extension().is_some_and(|kind| kind == "wal")).count()
}

/// How far the hook has come, and what it found in the follower.
#[derive(Default)]
struct Looks {
    begins: AtomicBool,
    reads: AtomicBool,
    lists: AtomicBool,
    follower: Mutex<Option<Db>>,
    found: Mutex<Vec<Contents>>,
}

impl Looks {
    /// Looking calls the hook again, which then does not look.
    fn look(&self) {
        let Ok(follower) = self.follower.try_lock() else { return };
        self.found.lock().unwrap().extend(follower.iter().map(contents));
    }
}

#[test]
fn i7_catching_up_does_not_wait_for_a_look_at_sidecars() {
    let fs = SimFs::new();
    let writer = tiny_on(&fs).open(STORE).unwrap();
    (0..2000).for_each(|n| writer.put(format!("key{n:05}"), [b'v'; 100]).unwrap());
    writer.compact().unwrap();
    let follower = Arc::new(tiny_on(&fs).follow(true).open(STORE).unwrap());
    assert!(follower.stats().levels.iter().map(|level| level.segments).sum::<usize>() > 20);
    let (looks, goes_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (sees, ends) = (looks.clone(), goes_on.clone());
    fs.before_each(move |_, kind, path| {
        let is_follower = thread::current().name() == Some("sidebloom-follow");
        // Only a look inspects sidecars.
        if is_follower && kind == OpKind::Inspect && path.extension().is_some_and(|kind| kind == "filter") {
            sees.store(true, SeqCst);
            (0..).take_while(|_| !ends.load(SeqCst)).for_each(|_| thread::sleep(Duration::from_millis(1)));
        }
    });
    eventually("a look at the sidecars", || looks.load(SeqCst));
    writer.put("new", "row").unwrap();
    let catches_up = Arc::clone(&follower);
    promptly("catching up", move || catches_up.catch_up()).unwrap();
    assert_eq!(follower.get("new").unwrap().as_deref(), Some(b"row".as_slice()));
    goes_on.store(true, SeqCst);
}
