//! The process that is killed. It checks what the previous one left, then writes from several threads, during
//! flushes, compactions, checkpoints, new filters and forks; closes, repairs, reopens under other options,
//! and continues.

use super::check::{check, check_copy, settle};
use super::expected::{Expected, INGESTED, Ingest, KEYS, Record, WRITERS, ingested, key, keys_of, value};
use super::fork;
use crate::contents::{Change, Span, batch_of, rows_put, transact};
use crate::home::Home;
use crate::support::Rng;
use crate::{brief, config};
use sidebloom::fs::RealFs;
use sidebloom::{Db, Durability, Error, Keyspace, Options};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// If nobody has killed the child after this time, its parent is gone.
const LIVES: Duration = Duration::from_secs(30);
/// What it prints after a forked process has ended.
pub const FORKED: &str = "forked";

/// What the child does more often, because it is to be killed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Aim {
    Anything,
    Checkpoint,
    /// The same, but the kill waits until files are linked or copied.
    Copy,
    Compaction,
    Repair,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ChildArgs {
    pub dir: PathBuf,
    pub seed: u64,
    pub aim: Aim,
}

struct Child {
    dir: PathBuf,
    rng: Rng,
    expected: Expected,
    aim: Aim,
    /// Where the rows are.
    home: Home,
    what: String,
}

/// Runs until it is killed.
pub fn child(args: &ChildArgs) -> ExitCode {
    let expected = Expected::open(&args.dir.join("expected")).unwrap();
    let what = format!("child {:#x}", args.seed);
    let (home, rng) = (Home::of_seed(args.seed >> 8), Rng::new(args.seed));
    let mut child = Child { dir: args.dir.clone(), rng, expected, aim: args.aim, home, what };
    let started = Instant::now();
    child.before();
    while started.elapsed() < LIVES {
        child.round();
    }
    ExitCode::from(3)
}

/// Tells the parent.
fn say(what: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("{what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

impl Child {
    fn store(&self) -> PathBuf {
        self.dir.join("store")
    }

    fn copy(&self) -> PathBuf {
        self.dir.join("copy")
    }

    /// A kill in the middle must not leave a part that looks like half a checkpoint.
    fn remove_copy(&self) {
        let removed = self.dir.join("removed");
        if removed.exists() {
            std::fs::remove_dir_all(&removed).unwrap();
        }
        std::fs::rename(self.copy(), &removed).unwrap();
        std::fs::remove_dir_all(removed).unwrap();
    }

    fn options(&mut self) -> Options {
        let durability = if self.rng.percent(20) { Durability::Sync } else { Durability::Os };
        config::random(&mut self.rng, Arc::new(RealFs)).durability(durability)
    }

    fn ok<T>(&self, what: &str, outcome: sidebloom::Result<T>) -> T {
        outcome.unwrap_or_else(|e| panic!("{}: {what}: {e}", self.what))
    }

    /// Files and work that a kill may have left.
    fn before(&mut self) {
        let manifest = self.store().join("MANIFEST");
        if is_without_manifest(&self.store()) {
            self.repair("an interrupted repair is repeated");
        } else if manifest.exists() && self.rng.percent(if self.aim == Aim::Repair { 60 } else { 8 }) {
            self.repair("a repair after a kill");
        }
        if self.copy().exists() {
            match Options::new().read_only(true).open(self.copy()) {
                Ok(db) => {
                    say("a whole checkpoint");
                    check_copy(&db, self.home, &self.expected, &format!("{}: left by a kill", self.what));
                }
                Err(Error::NotAStore { .. }) if !self.copy().join("MANIFEST").exists() => {
                    say("half a checkpoint");
                }
                Err(error) => panic!("{}: half a checkpoint: {error}", self.what),
            }
            self.remove_copy();
        }
        if manifest.exists() && self.rng.percent(25) {
            let options = self.options().read_only(true);
            let db = self.ok("open read-only", options.open(self.store()));
            let rows = self.ok("keyspace", self.home.so_far(&db));
            self.check(&rows);
            self.check_brief(&db);
        }
    }

    fn repair(&mut self, why: &str) {
        say("repair");
        let repaired = self.options().repair(self.store());
        let report = self.ok(why, repaired);
        assert!(report.lost.is_empty(), "{}: {why}: {report:?}", self.what);
    }

    fn check(&mut self, rows: &Keyspace) {
        let keys = check(rows, &self.expected, &mut self.rng, &self.what);
        say(&format!("checked {keys}"));
    }

    fn check_brief(&self, db: &Db) {
        brief::check(db).unwrap_or_else(|e| panic!("{}: {e}", self.what));
    }

    /// One opening of the store.
    fn round(&mut self) {
        let options = self.options();
        self.what =
            format!("{}, {}", self.what.split(',').next().unwrap_or_default(), config::describe(&options));
        let db = self.ok("open", options.open(self.store()));
        let rows = self.ok("keyspace", self.home.of(&db));
        self.check(&rows);
        self.check_brief(&db);
        settle(&rows, &self.expected);
        if self.expected.ingest() == Ingest::No && self.rng.percent(50) {
            self.ingest(&rows);
        }
        self.expected.note_opened();
        say("writes");
        let longest: &[u64] = if self.aim == Aim::Repair { &[1, 10] } else { &[1, 10, 50, 1000] };
        let until = Instant::now() + Duration::from_millis(*self.rng.pick(longest));
        let rngs: [Rng; WRITERS] = std::array::from_fn(|_| Rng::new(self.rng.next()));
        let rng = Rng::new(self.rng.next());
        let (this, handle, written) = (&*self, &db, &rows);
        std::thread::scope(|scope| {
            for (writer, rng) in rngs.into_iter().enumerate() {
                scope.spawn(move || this.write(written, writer, until, rng));
            }
            this.disturb(handle, written, until, rng);
        });
        if self.rng.percent(30) {
            let report = self.ok("verify", db.verify());
            assert!(report.is_ok(), "{}: {:?}", self.what, report.problems);
        }
        drop((rows, db));
        say("closed");
        if self.rng.percent(if self.aim == Aim::Repair { 90 } else { 10 }) {
            // All obsolete files are gone, so the segments alone make the store.
            std::fs::remove_file(self.store().join("MANIFEST")).unwrap();
            self.repair("a repair without a manifest");
        }
    }

    /// Another one may have been killed half-way.
    fn ingest(&mut self, keyspace: &Keyspace) {
        self.expected.set_ingest(Ingest::Pending);
        let rows = (0..INGESTED).map(|row| Ok(ingested(row)));
        let done =
            if self.rng.percent(50) { keyspace.ingest(rows) } else { keyspace.ingest_unsorted(rows.rev()) };
        self.ok("ingest", done);
        self.expected.set_ingest(Ingest::Done);
    }

    fn write(&self, db: &Keyspace, writer: usize, until: Instant, mut rng: Rng) {
        while Instant::now() < until {
            let number = self.expected.last_number(writer) + 1;
            self.expected.set_last_number(writer, number);
            let keys = keys_of(writer, number);
            for &index in &keys {
                let record = self.expected.record(writer, index);
                self.expected.set_record(writer, index, Record { pending: number, ..record });
            }
            let change = |&index: &usize| match value(writer, index, number) {
                Some(value) => Change::Put(key(writer, index), value),
                None => deletion(key(writer, index), number),
            };
            let changes: Vec<_> = keys.iter().map(change).collect();
            // Writers ingest concurrently: some of the batches without a deletion.
            let written = match rows_put(&changes).filter(|_| rng.percent(20)) {
                Some(rows) => db.ingest(rows.into_iter().map(Ok)),
                None if rng.percent(20) => transact(db, &changes, Durability::Os),
                None if rng.percent(5) => db.write_with(batch_of(db, &changes), Durability::Sync),
                None => db.write(batch_of(db, &changes)),
            };
            self.ok("write", written);
            for &index in &keys {
                self.expected.set_record(writer, index, Record { pending: number, acknowledged: number });
            }
            let index = rng.below(KEYS as u64) as usize;
            let found = self.ok("get", db.get(key(writer, index)));
            let expected = value(writer, index, self.expected.record(writer, index).acknowledged);
            assert_eq!(
                found.as_deref(),
                expected.as_deref(),
                "{}: key {index} of writer {writer}",
                self.what
            );
        }
    }

    fn checkpoint(&self, db: &Db, rng: &mut Rng) -> sidebloom::Result<()> {
        self.expected.note_copied();
        say("checkpoint");
        db.checkpoint(self.copy())?;
        if rng.percent(20) {
            let copy = self.ok("open a checkpoint", Options::new().read_only(true).open(self.copy()));
            check_copy(&copy, self.home, &self.expected, &self.what);
            say("checked a checkpoint");
        }
        self.remove_copy();
        Ok(())
    }

    fn disturb(&self, db: &Db, rows: &Keyspace, until: Instant, mut rng: Rng) {
        while Instant::now() < until {
            let often = rng.percent(70);
            let next = match self.aim {
                Aim::Checkpoint | Aim::Copy if often => 6,
                Aim::Compaction if often => 2,
                _ => rng.below(14),
            };
            let done = match next {
                0 | 1 => db.flush(),
                2 => db.compact(),
                3 => {
                    let [from, to] = [0, 1].map(|_| key(2, 2 + rng.below(KEYS as u64 - 2) as usize));
                    rows.compact_range(from..to)
                }
                4 => db.sync(),
                5 => db.rebuild_filters(config::filters(&mut rng)).map(|_| ()),
                6 => self.checkpoint(db, &mut rng),
                7 => db.wait_for_compaction(),
                8 => db.warm(),
                12 | 13 => brief::write(db, &mut rng),
                9 => {
                    fork::fork(db, &self.store(), &mut rng, &self.what);
                    say(FORKED);
                    Ok(())
                }
                _ => {
                    std::thread::sleep(Duration::from_micros(rng.below(3000)));
                    Ok(())
                }
            };
            self.ok("concurrently with the writers", done);
        }
    }
}

/// Deletes a key, sometimes as a range: the other writers' keys lie between its neighbors.
fn deletion(key: Vec<u8>, number: u64) -> Change {
    match number % 4 {
        0 => Change::DeleteSpan(Span::only(key)),
        1 if !key.is_empty() => Change::DeleteSpan(Span::Prefix(key)),
        _ => Change::Delete(key),
    }
}

/// Whether a repair was killed before it had a new manifest.
pub fn is_without_manifest(store: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(store) else { return false };
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let is_data = |name: &String| name.ends_with(".segment") || name.ends_with(".wal");
    names.iter().any(is_data) && !names.contains(&"MANIFEST".to_owned())
}
