//! The sessions of a workload while a fault is planned.

use super::after_fault::check_live;
use super::history::assert_same;
use super::judge::Call;
use super::trial::{Copied, Trial};
use super::workload::{Session, Step, options};
use crate::brief;
use crate::contents::rows;
use crate::generations;
use crate::support::{Contents, Rng, STORE};
use sidebloom::{Db, Durability, Error, FilterPolicy, Snapshot};
use std::sync::Arc;

impl Trial<'_> {
    /// Runs the sessions until the fault has struck and gone.
    pub fn sessions(&mut self) {
        for session in &self.workload.sessions {
            match session {
                Session::Writable { options, steps, second_writer, ingest } => {
                    self.writable(*options, steps, *second_writer, *ingest);
                }
                Session::ReadOnly { options } => self.read_only(*options),
                Session::Repair => self.repair(),
            }
            if self.has_losses || (self.strikes() > 0 && self.fs().faults_left() == 0) {
                return;
            }
        }
    }

    fn writable(&mut self, seed: u64, steps: &[Step], second_writer: bool, ingest: bool) {
        let fs = self.fs().clone();
        let before = self.strikes();
        let db = self.open(|| options(seed, &fs));
        (self.opened_at, self.of_ingest) = (self.strikes(), 0..0);
        self.settle(&db, "opened");
        let mut snapshots = Vec::new();
        if ingest {
            self.ingest(&db);
        }
        let (shared, writer) = (Arc::clone(&self.shared), db.clone());
        let salt = self.rng.next();
        std::thread::scope(|scope| {
            if second_writer {
                scope.spawn(move || {
                    let mut rng = Rng::new(salt);
                    for i in 0..12 {
                        let durability = if i % 5 == 4 { Durability::Sync } else { Durability::Os };
                        let _ = shared.write(&writer, 1, durability);
                        shared.check_gets(&writer, 1, &mut rng);
                    }
                });
            } else {
                drop((writer, shared));
            }
            for step in steps {
                self.step(&db, step, &mut snapshots);
                self.crash_if_struck();
            }
        });
        for (snapshot, expected) in snapshots.drain(..) {
            self.check_snapshot(&snapshot, &expected);
        }
        if self.strikes() > before && self.rng.percent(75) {
            self.fs().heal();
            check_live(self, &db);
        }
        drop(db);
    }

    fn step(&mut self, db: &Db, step: &Step, snapshots: &mut Vec<(Snapshot, Contents)>) {
        let shared = Arc::clone(&self.shared);
        match step {
            Step::Write(n, synced) => {
                for _ in 0..*n {
                    let sync = self.rng.percent(*synced);
                    let _ = shared.write(db, 0, if sync { Durability::Sync } else { Durability::Os });
                }
            }
            Step::Flush => drop(shared.sync(Call::Write, || db.flush())),
            Step::Sync => drop(shared.sync(Call::Write, || db.sync())),
            Step::Compact => drop(shared.sync(Call::Compact, || db.compact())),
            Step::CompactRange(from, to) => {
                // An empty range does not flush.
                let result = db.compact_range(&from[..]..&to[..]);
                drop(result.inspect_err(|error| shared.explain(Call::Compact, error)));
            }
            Step::Snapshot => {
                let expected = shared.model().histories[0].live.clone();
                snapshots.push((db.snapshot(), expected));
            }
            Step::Walk => {
                let backwards = self.rng.percent(50);
                if let Some(found) = shared.read(rows(db.iter(), backwards)) {
                    shared.check_walk(&found, if backwards { "walk backwards" } else { "walk" });
                }
            }
            Step::Get => shared.check_gets(db, 0, &mut self.rng),
            Step::MultiGet => {
                let (keys, expected): (Vec<Vec<u8>>, Vec<Option<Vec<u8>>>) = {
                    let history = &shared.model().histories[0];
                    let keys = (0..20).map(|_| history.any_key(&mut self.rng));
                    keys.map(|key| (key.clone(), history.live.get(&key).cloned())).unzip()
                };
                if let Some(found) = shared.read(db.multi_get(&keys)) {
                    let found: Vec<_> = found.iter().map(|v| v.as_deref().map(<[u8]>::to_vec)).collect();
                    assert_eq!(found, expected, "{}: multi_get", shared.what);
                }
            }
            Step::RebuildFilters(bits) => {
                let rebuilt = db.rebuild_filters(FilterPolicy::bits_per_key(*bits)).map(|_| ());
                drop(rebuilt.inspect_err(|error| shared.explain(Call::Filters, error)));
            }
            Step::Keyspace => self.neighbour.change(db, &shared),
            Step::Brief => self.brief(db),
            Step::Checkpoint => self.checkpoint(db),
            Step::Verify => self.verify(db),
            Step::Warm => drop(db.warm().inspect_err(|error| shared.explain(Call::Filters, error))),
            Step::Wait => {
                drop(db.wait_for_compaction().inspect_err(|error| shared.explain(Call::Wait, error)));
            }
        }
    }

    fn brief(&mut self, db: &Db) {
        let shared = Arc::clone(&self.shared);
        for _ in 0..4 {
            let written = brief::write(db, &mut self.rng);
            drop(written.inspect_err(|error| shared.explain(Call::Transact, error)));
        }
        shared.check_brief(brief::find_expired(db));
    }

    fn ingest(&mut self, db: &Db) {
        let (rows, before) = (self.shared.model().ingested.rows.clone(), self.strikes());
        let result = db.ingest(rows.into_iter().map(Ok));
        let there = result.is_ok().then_some(true);
        self.shared.model().ingested.there = there;
        if let Err(error) = result {
            self.shared.explain(Call::Write, &error);
        }
        self.of_ingest = before..self.strikes();
        self.crash_if_struck();
    }

    fn checkpoint(&mut self, db: &Db) {
        self.copy_number += 1;
        let path = format!("disk/copies/copy{}", self.copy_number);
        let contents = {
            let model = self.shared.model();
            let mut contents = model.ingested.live();
            contents.extend(model.histories[0].live.clone());
            contents
        };
        match self.shared.sync(Call::Checkpoint, || db.checkpoint(&path)) {
            Ok(()) => {
                let neighbour = self.neighbour.clone();
                self.copies.push(Copied { path, contents, neighbour });
            }
            Err(_) => self.failed_copies.push(path),
        }
    }

    /// The check must find only what a fault has caused.
    fn verify(&self, db: &Db) {
        let report = db.verify().unwrap_or_else(|error| panic!("{}: verify: {error}", self.shared.what));
        let strikes = self.shared.own_strikes();
        for problem in &report.problems {
            let path = match problem {
                Error::Io { path, .. } => path,
                Error::Corruption { file, .. } => file,
                other => panic!("{}: verify found {other}", self.shared.what),
            };
            let explained = strikes.iter().any(|strike| strike.path == *path);
            assert!(explained, "{}: verify found {problem}", self.shared.what);
        }
    }

    fn check_snapshot(&mut self, snapshot: &Snapshot, expected: &Contents) {
        if let Some(found) = self.shared.read(rows(snapshot.iter(), self.rng.percent(50))) {
            let mine = self.shared.model().histories[0].part_of(&found);
            assert_same(&mine, expected, &format!("{}: a snapshot", self.shared.what));
        }
    }

    fn read_only(&mut self, seed: u64) {
        let fs = self.fs().clone();
        let writes = fs.writes();
        let db = self.open(|| options(seed, &fs).read_only(true).follow(seed.is_multiple_of(2)));
        let refused = db.put("a/refused", "");
        assert!(matches!(refused, Err(Error::ReadOnly)), "{}: {refused:?}", self.shared.what);
        // What was not acknowledged is decided here, and must be the same at the next opening.
        if let Some(found) = self.shared.read(rows(db.iter(), self.rng.percent(50))) {
            let mut model = self.shared.model();
            let least = model.last_acknowledged();
            model.settle(&found, &least, &format!("{}: read-only", self.shared.what));
        } else {
            return;
        }
        if let Some(found) = self.shared.read(generations::find(&db)) {
            self.neighbour.settle(found, &format!("{}: read-only", self.shared.what));
        }
        self.shared.check_gets(&db, 0, &mut self.rng);
        self.verify(&db);
        drop(db);
        assert_eq!(fs.writes(), writes, "{}: a read-only store wrote", self.shared.what);
    }

    fn repair(&mut self) {
        let fs = self.fs().clone();
        let report = loop {
            self.shared.begin();
            match options(0, &fs).repair(STORE) {
                Ok(report) => break report,
                Err(error) => {
                    self.shared.explain(Call::Repair, &error);
                    if self.fault.is_some_and(|fault| fault.forever) {
                        self.fs().heal();
                    }
                }
            }
        };
        // A file that could not be read counts as damaged.
        self.has_losses = !report.lost.is_empty() || report.logs.is_some();
        let could_read = self.shared.own_strikes().iter().all(|strike| strike.kind.is_write());
        assert!(!self.has_losses || !could_read, "{}: repair lost {report:?}", self.shared.what);
    }
}
