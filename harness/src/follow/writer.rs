//! The process that writes: batches from several threads, ingested rows, flushes, compactions and new
//! filters. It closes the store and reopens it under other options.

use super::rows::{ChildArgs, INGESTED, KEYS, Numbers, WRITERS, key, value};
use crate::contents::{Change, Span, batch_of, transact};
use crate::home::Home;
use crate::support::Rng;
use crate::{brief, config};
use sidebloom::fs::RealFs;
use sidebloom::{Db, Durability, Keyspace};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// If nobody has killed the child after this time, its parent is gone.
const LIVES: Duration = Duration::from_secs(30);

/// Runs until it is killed.
pub fn writer(args: &ChildArgs) -> ExitCode {
    let (mut rng, numbers) = (Rng::new(args.seed), Numbers::open(&args.dir));
    let started = Instant::now();
    while started.elapsed() < LIVES {
        let db = loop {
            match config::random(&mut rng, Arc::new(RealFs)).open(args.dir.join("store")) {
                Ok(db) => break db,
                // The kernel has not yet released the locks of the previous process.
                Err(sidebloom::Error::Locked { .. }) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("open: {error}"),
            }
        };
        if rng.percent(30) {
            // The store was closed cleanly, and nothing has been written yet.
            db.compact().unwrap_or_else(|e| panic!("compact before the first write: {e}"));
        }
        let rows = Home::of_seed(args.seed >> 16).of(&db).unwrap_or_else(|e| panic!("keyspace: {e}"));
        let until = Instant::now() + Duration::from_millis(*rng.pick(&[1, 20, 100, 1000]));
        let seeds: [u64; WRITERS] = std::array::from_fn(|_| rng.next());
        std::thread::scope(|scope| {
            for (source, seed) in seeds.into_iter().enumerate() {
                let (rows, numbers) = (&rows, &numbers);
                scope.spawn(move || write(rows, numbers, source, until, Rng::new(seed)));
            }
            disturb(&db, &rows, &numbers, until, &mut rng);
        });
    }
    ExitCode::from(3)
}

fn write(db: &Keyspace, numbers: &Numbers, source: usize, until: Instant, mut rng: Rng) {
    while Instant::now() < until {
        let number = numbers.started(source) + 1;
        let change = |index| match value(source, index, number) {
            Some(value) => Change::Put(key(source, index), value),
            None if number.is_multiple_of(3) => Change::DeleteSpan(Span::only(key(source, index))),
            None => Change::Delete(key(source, index)),
        };
        let changes: Vec<_> = (0..KEYS).map(change).collect();
        numbers.set_started(source, number);
        let written = match number % 4 {
            0 => transact(db, &changes, Durability::Os),
            _ => db.write(batch_of(db, &changes)),
        };
        written.unwrap_or_else(|e| panic!("write: {e}"));
        numbers.set_acknowledged(source, number);
        if rng.percent(20) {
            std::thread::sleep(Duration::from_micros(rng.below(2000)));
        }
    }
}

fn disturb(db: &Db, rows: &Keyspace, numbers: &Numbers, until: Instant, rng: &mut Rng) {
    while Instant::now() < until {
        let done = match rng.below(11) {
            0 => db.flush(),
            1 => db.compact(),
            2 => db.rebuild_filters(config::filters(rng)).map(|_| ()),
            3 => db.wait_for_compaction(),
            4 => db.sync(),
            9 | 10 => brief::write(db, rng),
            5 => ingest(rows, numbers, rng),
            _ => {
                std::thread::sleep(Duration::from_micros(rng.below(5000)));
                Ok(())
            }
        };
        done.unwrap_or_else(|e| panic!("concurrently with the writers: {e}"));
    }
}

fn ingest(keyspace: &Keyspace, numbers: &Numbers, rng: &mut Rng) -> sidebloom::Result<()> {
    let number = numbers.started(INGESTED) + 1;
    numbers.set_started(INGESTED, number);
    let mut rows: Vec<_> =
        (0..KEYS).filter_map(|index| Some((key(INGESTED, index), value(INGESTED, index, number)?))).collect();
    if rng.percent(50) {
        rows.sort();
        keyspace.ingest(rows.into_iter().map(Ok))?
    } else {
        keyspace.ingest_unsorted(rows.into_iter().map(Ok))?
    };
    numbers.set_acknowledged(INGESTED, number);
    Ok(())
}
