//! Events, as a callback is told.

use crate::support::{OpKind, STORE, SimFs, eventually, fast_dir, tiny_on};
use sidebloom::{Db, Event, Options};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::time::Duration;

/// Options whose callback keeps all events.
fn recording(options: Options) -> (Options, Arc<Mutex<Vec<Event>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&events);
    (options.on_event(move |event| to.lock().unwrap().push(event.clone())), events)
}

fn has(events: &Mutex<Vec<Event>>, is: impl Fn(&Event) -> bool) -> bool {
    events.lock().unwrap().iter().any(is)
}

#[test]
fn flushes_compactions_and_rebuilt_filters_are_told_with_their_sizes() {
    let dir = fast_dir();
    let (options, events) = recording(Options::new());
    let db = options.open(dir.path().join("store")).unwrap();
    for run in 0..2 {
        (0..1000).for_each(|n| db.put(format!("key{n:04}"), format!("value {run}")).unwrap());
        db.flush().unwrap();
    }
    db.compact().unwrap();
    db.rebuild_filters(sidebloom::FilterPolicy::bits_per_key(16.0)).unwrap();
    let stats = db.stats();
    db.close().unwrap();
    let events = events.lock().unwrap();
    let flushed: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::Flush { segments: 1, bytes, seconds, .. } if *seconds > 0.0 => Some(*bytes),
            _ => None,
        })
        .collect();
    assert_eq!((flushed.len(), flushed.iter().sum()), (2, stats.flush_bytes), "{events:?}");
    let merged = events.iter().find_map(|event| match event {
        Event::Compaction { kind: "merge", input_segments: 2, input_bytes, output_bytes, .. } => {
            Some((*input_bytes, *output_bytes))
        }
        _ => None,
    });
    assert_eq!(merged, Some((stats.compaction_read_bytes, stats.compaction_bytes)), "{events:?}");
    let is_rebuilt = |event: &Event| matches!(event, Event::FilterRebuilt { keys: 1000, .. });
    assert!(events.iter().any(is_rebuilt), "{events:?}");
}

/// The callback stores, reads and looks at statistics, at every event, while writers stall.
#[test]
fn a_callback_may_use_the_store_while_writers_stall() {
    let dir = fast_dir();
    let slot: Arc<OnceLock<Mutex<Option<Db>>>> = Arc::default();
    let (its, calls, stalls) =
        (Arc::clone(&slot), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, stalled) = (Arc::clone(&calls), Arc::clone(&stalls));
    let options = Options::new().memtable_bytes(16 << 10).on_event(move |event| {
        let Some(db) = its.get().and_then(|db| db.lock().unwrap().clone()) else { return };
        let n = counted.fetch_add(1, SeqCst);
        stalled.fetch_add(usize::from(matches!(event, Event::Stall { .. })), SeqCst);
        db.put(format!("event{n:06}"), event.name()).unwrap();
        assert_eq!(&db.get(format!("event{n:06}")).unwrap().unwrap()[..], event.name().as_bytes());
        assert!(db.stats().user_bytes > 0);
    });
    let db = options.open(dir.path().join("store")).unwrap();
    assert!(slot.set(Mutex::new(Some(db.clone()))).is_ok());
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let db = &db;
            scope.spawn(move || {
                (0..5000).for_each(|n| db.put(format!("{writer}{n:06}"), [7; 200]).unwrap());
            });
        }
    });
    eventually("the callback was called", || calls.load(SeqCst) > 0 && stalls.load(SeqCst) > 0);
    assert!(db.stats().stalls > 0);
    slot.get().unwrap().lock().unwrap().take();
    db.close().unwrap();
}

#[test]
fn a_panic_in_a_callback_harms_neither_the_store_nor_later_events() {
    let dir = fast_dir();
    let (to, from) = mpsc::channel();
    let to = Mutex::new(to);
    let options = Options::new().on_event(move |event| {
        to.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).send(event.name()).unwrap();
        panic!("a test");
    });
    let db = options.open(dir.path().join("store")).unwrap();
    for n in 0..3 {
        db.put(format!("key{n}"), "value").unwrap();
        db.flush().unwrap();
        assert_eq!(from.recv_timeout(Duration::from_secs(60)).unwrap(), "flush");
    }
    assert!(!db.stats().has_failed);
    db.close().unwrap();
}

/// A callback that does not return keeps nobody waiting, and what does not fit into the queue is counted.
#[test]
fn a_slow_callback_stops_no_write_and_lost_events_are_counted() {
    let dir = fast_dir();
    let (barrier, told) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
    let (its, counted, is_first) = (Arc::clone(&barrier), Arc::clone(&told), AtomicBool::new(true));
    let options = Options::new().on_event(move |_| {
        if is_first.swap(false, SeqCst) {
            its.wait();
        }
        counted.fetch_add(1, SeqCst);
    });
    let db = options.open(dir.path().join("store")).unwrap();
    let mut n = 0;
    while db.stats().events_dropped < 10 {
        db.put(format!("key{n}"), "value").unwrap();
        db.flush().unwrap();
        n += 1;
        assert!(n < 10_000, "{}", db.stats().events_dropped);
    }
    assert_eq!(told.load(SeqCst), 0);
    barrier.wait();
    let (stats, all) = (db.stats(), |stats: &sidebloom::Stats| stats.flushes + stats.compactions);
    assert!(all(&stats) >= 1024);
    db.close().unwrap();
    assert!(told.load(SeqCst) >= 1025, "the first one and all that waited were told");
}

/// The last handle may be the callback's own.
#[test]
fn a_callback_may_close_the_store() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let slot: Arc<Mutex<Option<Db>>> = Arc::default();
    let its = Arc::clone(&slot);
    let options = Options::new().on_event(move |_| drop(its.lock().unwrap().take()));
    let db = options.open(&path).unwrap();
    *slot.lock().unwrap() = Some(db.clone());
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    drop(db);
    eventually("the store is closed", || slot.lock().unwrap().is_none() && Db::open(&path).is_ok());
}

#[test]
fn damage_and_failures_are_told_with_the_file_and_the_cause() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let (options, events) = recording(Options::new());
    let db = options.clone().open(&path).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let filter = files.find(|file| file.extension().is_some_and(|e| e == "filter")).unwrap();
    std::fs::write(&filter, "damaged").unwrap();
    let db = options.open(&path).unwrap();
    let named = filter.display().to_string();
    eventually("the filter is told of", || {
        has(&events, |e| matches!(e, Event::FilterUnusable { file, .. } if *file == named))
            && has(&events, |e| matches!(e, Event::FilterRebuilt { file, .. } if *file == named))
    });
    db.stop_writing("somebody else writes");
    eventually("the failure is told of", || {
        has(&events, |e| matches!(e, Event::Failed { cause, .. } if cause == "somebody else writes"))
    });
}

/// A follower that cannot read the manifest lags, and catches up once it can.
#[test]
fn a_follower_that_lags_is_told_of_once_and_so_is_its_return() {
    let dir = fast_dir();
    let path = dir.path().join("store");
    let (manifest, elsewhere) = (path.join("MANIFEST"), dir.path().join("elsewhere"));
    let writer = Db::open(&path).unwrap();
    writer.put("key", "value").unwrap();
    writer.close().unwrap();
    let (options, events) = recording(Options::new().follow(true));
    let follower = options.open(&path).unwrap();
    std::fs::rename(&manifest, &elsewhere).unwrap();
    let is_lag = |event: &Event| matches!(event, Event::FollowerLag { seconds, .. } if *seconds >= 1.0);
    eventually("it lags", || has(&events, is_lag));
    std::thread::sleep(Duration::from_millis(200));
    std::fs::rename(&elsewhere, &manifest).unwrap();
    let is_return =
        |event: &Event| matches!(event, Event::FollowerCaughtUp { seconds, .. } if *seconds >= 1.2);
    eventually("it has caught up", || has(&events, is_return));
    assert!(follower.get("key").unwrap().is_some());
    assert_eq!(events.lock().unwrap().iter().filter(|event| is_lag(event)).count(), 1);
}

/// While the writer stalls, it holds the log; the callback is called all the same.
#[test]
fn a_long_stall_is_told_of_while_it_lasts_and_at_its_end() {
    let fs = SimFs::new();
    let (options, events) = recording(tiny_on(&fs));
    let db = options.open(STORE).unwrap();
    let held = fs.hold(OpKind::Sync); // No flush ends.
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| (0..500).try_for_each(|n| db.put(format!("key{n:04}"), [7; 200])));
        eventually("a long stall", || {
            has(&events, |e| matches!(e, Event::LongStall { memtables_waiting: 2, .. }))
        });
        assert_eq!(db.stats().write_stall, Some(sidebloom::WriteStall::Flush));
        drop(held);
        writing.join().unwrap().unwrap();
    });
    eventually("its end", || {
        has(&events, |e| matches!(e, Event::Stall { reason: "flush", seconds, .. } if *seconds >= 1.0))
    });
}

#[test]
fn a_full_disk_is_told_of_as_a_shortage() {
    let fs = SimFs::new();
    let (options, events) = recording(tiny_on(&fs));
    let db = options.open(STORE).unwrap();
    fs.limit_space(2000);
    let failed = (0..500).try_for_each(|n| db.put(format!("key{n:04}"), [7; 200]));
    assert!(failed.unwrap_err().to_string().contains("No space left"));
    let is_shortage = |event: &Event| matches!(event, Event::Shortage { resource: "disk", error, .. } if error.contains("No space left"));
    eventually("the shortage", || has(&events, is_shortage));
    assert!(db.stats().shortages > 0);
}

#[test]
fn a_segment_is_told_of_when_it_enters_and_leaves_quarantine() {
    let fs = SimFs::new();
    let (options, events) = recording(tiny_on(&fs));
    let db = options.open(STORE).unwrap();
    (0..2).for_each(|n| {
        (0..5).for_each(|row| db.put(format!("key{row}"), [n; 20]).unwrap());
        db.flush().unwrap();
    });
    let segment =
        fs.files().into_iter().find(|path| path.extension().is_some_and(|e| e == "segment")).unwrap();
    fs.make_unreadable(&segment, 0..1 << 20);
    db.compact().unwrap_err();
    let named = segment.display().to_string();
    eventually("the quarantine", || {
        has(
            &events,
            |e| matches!(e, Event::Quarantine { file, error, .. } if *file == named && !error.is_empty()),
        )
    });
    fs.heal();
    db.compact().unwrap();
    eventually("the return", || {
        has(&events, |e| matches!(e, Event::QuarantineEnd { file, .. } if *file == named))
    });
}
