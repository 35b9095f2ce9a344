//! Concurrent writers, readers, flushes and compactions.

use crate::support::{Rng, contents, fast_dir, tiny};
use sidebloom::{Batch, Db, Durability, Options, Snapshot};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const WRITERS: u64 = 3;
const KEYS: u64 = 40;
const FOR: Duration = Duration::from_secs(2);

fn key(writer: u64, i: u64) -> Vec<u8> {
    format!("w{writer}/{i:02}").into_bytes()
}

fn version(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Batch number `n` of a writer: sets all its keys to `n`, except one, which it deletes.
fn batch(writer: u64, n: u64) -> Batch {
    let mut batch = Batch::new();
    for i in 0..KEYS {
        if i == n % KEYS {
            batch.delete(key(writer, i));
        } else {
            batch.put(key(writer, i), [n.to_le_bytes().as_slice(), &[b'.'; 20]].concat());
        }
    }
    batch
}

/// The number of the writer's batch that these values come from. All must come from one batch.
#[track_caller]
fn whole_batch(values: &[Option<u64>]) -> u64 {
    let n = values.iter().flatten().max().copied().unwrap_or(0);
    let of_one = |i: u64| (n > 0 && i != n % KEYS).then_some(n);
    assert_eq!(values, (0..KEYS).map(of_one).collect::<Vec<_>>(), "not one whole batch");
    n
}

fn by_get(snapshot: &Snapshot, writer: u64) -> u64 {
    let value = |i| snapshot.get(key(writer, i)).unwrap().map(|value| version(&value));
    whole_batch(&(0..KEYS).map(value).collect::<Vec<_>>())
}

fn by_walk(snapshot: &Snapshot, writer: u64, backwards: bool) -> u64 {
    let range = snapshot.prefix(format!("w{writer}/"));
    let walk: Box<dyn Iterator<Item = _>> = if backwards { Box::new(range.rev()) } else { Box::new(range) };
    let found: BTreeMap<_, _> =
        walk.map(|kv| kv.map(|(key, value)| (key, version(&value))).unwrap()).collect();
    whole_batch(&(0..KEYS).map(|i| found.get(&key(writer, i)).copied()).collect::<Vec<_>>())
}

fn by_multi_get(db: &Db, writer: u64) -> u64 {
    let keys: Vec<_> = (0..KEYS).map(|i| key(writer, i)).collect();
    let values = db.multi_get(&keys).unwrap();
    whole_batch(&values.iter().map(|value| value.as_deref().map(version)).collect::<Vec<_>>())
}

/// Readers see whole batches in order, and snapshots do not change, whatever happens.
#[test]
fn readers_see_whole_batches_in_order_and_snapshots_stand_still() {
    let dir = fast_dir();
    let db = tiny().memtable_bytes(32 << 10).block_cache_bytes(64 << 10).open(dir.path()).unwrap();
    let acknowledged: [AtomicU64; WRITERS as usize] = Default::default();
    let end = Instant::now() + FOR;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, acknowledged) = (db.clone(), &acknowledged);
            scope.spawn(move || {
                // On a busy machine, a writer may get little time.
                for n in (1..).take_while(|n| *n <= 30 || Instant::now() < end) {
                    let durability = if n % 50 == 0 { Durability::Sync } else { Durability::Os };
                    db.write_with(batch(writer, n), durability).unwrap();
                    acknowledged[writer as usize].store(n, SeqCst);
                    // A writer sees its own write at once, on every read path.
                    assert_eq!(by_multi_get(&db, writer), n);
                }
            });
        }
        for reader in 0..3u64 {
            let (db, acknowledged) = (db.clone(), &acknowledged);
            scope.spawn(move || {
                let mut rng = Rng::new(reader);
                let mut seen = [0; WRITERS as usize];
                let mut kept: Vec<(Snapshot, [u64; WRITERS as usize])> = Vec::new();
                while Instant::now() < end {
                    let snapshot = db.snapshot();
                    let mut now = [0; WRITERS as usize];
                    for writer in 0..WRITERS {
                        let of = writer as usize;
                        let known = acknowledged[of].load(SeqCst);
                        let n = match rng.below(3) {
                            0 => by_get(&snapshot, writer),
                            1 => by_walk(&snapshot, writer, false),
                            _ => by_walk(&snapshot, writer, true),
                        };
                        assert!(n >= seen[of], "{n} after {}", seen[of]);
                        let direct = by_multi_get(&db, writer);
                        assert!(
                            direct >= n && direct >= known,
                            "{direct}, {n} in an older snapshot, {known} known"
                        );
                        (now[of], seen[of]) = (n, n);
                    }
                    if rng.percent(10) {
                        kept.push((snapshot, now));
                    }
                    if kept.len() > 5 {
                        kept.swap_remove(rng.below(6) as usize);
                    }
                    for (snapshot, then) in &kept {
                        let writer = rng.below(WRITERS);
                        assert_eq!(by_get(snapshot, writer), then[writer as usize], "a snapshot moved");
                    }
                }
            });
        }
        scope.spawn(|| {
            while Instant::now() < end {
                db.flush().unwrap();
                db.compact().unwrap();
                assert!(db.verify().unwrap().is_ok());
            }
        });
    });
    let expected: Vec<u64> = acknowledged.iter().map(|n| n.load(SeqCst)).collect();
    assert!(expected.iter().all(|n| *n > 20), "{expected:?}");
    drop(db);
    let db = tiny().open(dir.path()).unwrap();
    let found: Vec<u64> = (0..WRITERS).map(|writer| by_multi_get(&db, writer)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_single_key_never_goes_back() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(SeqCst) {
                    let n = db.get(b"counter").unwrap().map_or(0, |value| version(&value));
                    assert!(n >= last, "{n} after {last}");
                    last = n;
                }
            });
        }
        for n in 1..=20_000u64 {
            db.put(b"counter", n.to_le_bytes()).unwrap();
            if n % 16 == 0 {
                db.put(format!("filler{}", n % 512), [0; 64]).unwrap();
            }
        }
        done.store(true, SeqCst);
    });
}

/// An iterator shows the moment when it was created, although compactions replace every segment under it.
#[test]
fn an_iterator_shows_the_moment_it_was_made_through_compactions() {
    let dir = fast_dir();
    let db = tiny().open(dir.path()).unwrap();
    for i in 0..1500u32 {
        db.put(format!("key{i:05}"), i.to_le_bytes()).unwrap();
    }
    let expected: Vec<_> = contents(&db).into_iter().collect();
    let (mut forwards, mut backwards) = (db.iter(), db.iter());
    for (step, (key, value)) in expected.iter().enumerate() {
        if step % 100 == 0 {
            (0..1500u32).step_by(3).for_each(|i| db.delete(format!("key{i:05}")).unwrap());
            db.put(format!("new{step}"), b"").unwrap();
            db.compact().unwrap();
        }
        let (found, same) = forwards.next().unwrap().unwrap();
        assert_eq!((&found, &same.to_vec()), (key, value));
        let (found, same) = backwards.next_back().unwrap().unwrap();
        let (key, value) = &expected[expected.len() - 1 - step];
        assert_eq!((&found, &same.to_vec()), (key, value));
    }
    assert!(forwards.next().is_none() && backwards.next_back().is_none());
}

/// Handles dropped in any order lose nothing, and the last one closes the store.
#[test]
fn handles_dropped_in_any_order_lose_nothing_and_the_last_one_closes() {
    for seed in 0..30 {
        let dir = fast_dir();
        let mut rng = Rng::new(seed);
        let mut handles = vec![tiny().open(dir.path()).unwrap()];
        (0..5).for_each(|_| handles.push(handles[rng.below(handles.len() as u64) as usize].clone()));
        std::thread::scope(|scope| {
            for i in (0..6u64).rev() {
                let handle = handles.swap_remove(rng.below(i + 1) as usize);
                scope.spawn(move || {
                    (0..80).for_each(|n| handle.put(format!("{i}/{n}"), [i as u8; 50]).unwrap());
                });
            }
        });
        let db = tiny().open(dir.path()).unwrap();
        assert_eq!(contents(&db).len(), 480, "seed {seed}");
    }
}

#[test]
fn a_compaction_that_closing_cuts_short_changes_nothing() {
    let dir = crate::support::fast_dir();
    let options = || Options::new().memtable_bytes(16 << 20);
    let mut cut_short = 0;
    for round in 0..5u8 {
        let db = options().open(dir.path()).unwrap();
        for part in 0..4u32 {
            (0..6000u32).for_each(|i| db.put(format!("key{:06}", i * 4 + part), [round; 20]).unwrap());
            db.flush().unwrap();
        }
        drop(db);
        let db = options().read_only(true).open(dir.path()).unwrap();
        cut_short += u32::from(db.stats().levels[0].segments >= 4);
        let rows: Vec<_> = db.iter().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 24_000, "round {round}");
        assert!(rows.iter().all(|(_, value)| **value == [round; 20]), "round {round}");
    }
    assert!(cut_short > 0, "closing always came after the compaction");
}
