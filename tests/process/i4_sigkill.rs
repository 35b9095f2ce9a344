//! I4 on a real file system: a process killed at any moment loses no acknowledged write, synced or not.

use crate::support::{Rng, Sequence, fast_dir, tiny};
use crate::{command_for, exclusive};
use sidebloom::{Batch, Db, Durability};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const DIR: &str = "SIDEBLOOM_TEST_KILLED_STORE";
const KILLS: u64 = 25;
const WRITERS: u64 = 3;

fn open(dir: &Path, durability: Durability) -> Db {
    tiny().memtable_bytes(16 << 10).durability(durability).open(dir).unwrap()
}

/// Starts this test binary again for one test, which writes to the store until killed.
fn spawn(test: &str, dir: &Path) -> Child {
    command_for(module_path!(), test).env(DIR, dir).stdout(Stdio::piped()).spawn().unwrap()
}

/// Kills the child after this many acknowledgements and a pause. Returns everything that it acknowledged.
fn kill_after(mut child: Child, lines: u64, moment: Duration) -> Vec<String> {
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    let is_acknowledgement = |line: &String| line.starts_with("acknowledged ");
    while (acknowledged.len() as u64) < lines {
        let line = output.next().expect("the child ends only when it is killed").unwrap();
        acknowledged.extend(Some(line).filter(is_acknowledgement));
    }
    std::thread::sleep(moment);
    child.kill().unwrap();
    child.wait().unwrap();
    // The last line may be incomplete. That batch was not acknowledged.
    acknowledged
        .extend(output.map_while(Result::ok).filter(is_acknowledgement).filter(|line| line.ends_with('.')));
    acknowledged
}

fn acknowledge(what: impl std::fmt::Display) {
    let line = format!("acknowledged {what} .\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
}

fn numbers(line: &str) -> Vec<u64> {
    line.split(' ').filter_map(|word| word.parse().ok()).collect()
}

/// One writer with known batches: the store must have a prefix of them that includes every acknowledged one.
fn one_writer(test: &str, durability: Durability) {
    let sequence = Sequence(99);
    if let Some(dir) = std::env::var_os(DIR) {
        let db = open(Path::new(&dir), durability);
        for i in sequence.prefix_of(&db) + 1.. {
            db.write(sequence.batch(i)).unwrap();
            acknowledge(i);
        }
    }
    let _exclusive = exclusive();
    let dir = fast_dir();
    let mut rng = Rng::new(1);
    let mut last = 0;
    for kill in 0..KILLS {
        let child = spawn(test, dir.path());
        let moment = Duration::from_micros(rng.below(10_000));
        let acknowledged = kill_after(child, rng.below(60), moment);
        last = acknowledged.last().map_or(last, |line| numbers(line)[0]);
        let db = open(dir.path(), durability);
        let found = sequence.prefix_of(&db);
        assert!(found == last || found == last + 1, "kill {kill}: {last} acknowledged, {found} found");
        assert!(kill % 8 > 0 || db.verify().unwrap().is_ok());
        last = found;
    }
    assert!(last > KILLS * 20, "{last}");
}

#[test]
fn i4_a_killed_process_has_lost_nothing_with_durability_os() {
    one_writer("i4_a_killed_process_has_lost_nothing_with_durability_os", Durability::Os);
}

#[test]
fn i4_a_killed_process_has_lost_nothing_with_durability_sync() {
    one_writer("i4_a_killed_process_has_lost_nothing_with_durability_sync", Durability::Sync);
}

/// Several writers share log appends: every acknowledged batch survives, and every batch is whole.
#[test]
fn i4_killed_writers_that_share_a_log_append_keep_what_they_were_told() {
    const TEST: &str = "i4_killed_writers_that_share_a_log_append_keep_what_they_were_told";
    let keys = |writer: u64| (0..4).map(move |k| format!("{writer}/{k}"));
    let found = |db: &Db, writer| {
        let values: Vec<_> = keys(writer).map(|key| db.get(key).unwrap()).collect();
        assert!(
            values.iter().all(|value| *value == values[0]),
            "half a batch of writer {writer}: {values:?}"
        );
        values[0].as_deref().map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
    };
    if let Some(dir) = std::env::var_os(DIR) {
        let db = open(Path::new(&dir), Durability::Sync);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let db = db.clone();
                scope.spawn(move || {
                    for i in found(&db, writer) + 1.. {
                        let mut batch = Batch::new();
                        keys(writer).for_each(|key| batch.put(key, i.to_le_bytes()));
                        db.write(batch).unwrap();
                        acknowledge(format_args!("{writer} {i}"));
                    }
                });
            }
        });
    }
    let _exclusive = exclusive();
    let dir = fast_dir();
    let mut rng = Rng::new(2);
    let mut last = [0; WRITERS as usize];
    for kill in 0..KILLS {
        let moment = Duration::from_micros(rng.below(10_000));
        for line in kill_after(spawn(TEST, dir.path()), rng.below(60), moment) {
            if let [writer, i] = numbers(&line)[..] {
                last[writer as usize] = i;
            }
        }
        let db = open(dir.path(), Durability::Sync);
        for writer in 0..WRITERS {
            let (found, told) = (found(&db, writer), &mut last[writer as usize]);
            assert!(found == *told || found == *told + 1, "kill {kill}: {told} of {writer}, {found} found");
            *told = found;
        }
    }
}
