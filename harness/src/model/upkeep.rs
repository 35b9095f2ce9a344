//! Actions that change no answer: flushes, compactions, other filters, checkpoints, reopening under other
//! options, damaged sidecars, repairs.

use super::player::Player;
use crate::config;
use sidebloom::Error;

impl Player<'_> {
    /// An action that this configuration prefers.
    pub fn maintain(&mut self) {
        match self.rng.below(20) {
            0..=3 => self.ok("flush", self.db().flush()),
            4 | 5 => self.ok("compact", self.db().compact()),
            6 | 7 => {
                let [from, to] =
                    [self.program.keys.pick(&mut self.rng), self.program.keys.pick(&mut self.rng)];
                let (from, to) = if self.rng.percent(90) && from > to { (to, from) } else { (from, to) };
                let compacted = if self.rng.percent(50) {
                    self.rows().compact_range(from..=to)
                } else {
                    self.rows().compact_range(from..)
                };
                self.ok("compact_range", compacted);
            }
            8..=10 => self.ok("wait_for_compaction", self.db().wait_for_compaction()),
            11 | 12 => {
                let policy = config::filters(&mut self.rng);
                _ = self.ok("rebuild_filters", self.db().rebuild_filters(policy));
            }
            13 => self.ok("sync", self.db().sync()),
            14 => self.ok("warm", self.db().warm()),
            15 => self.verify(),
            16 | 17 => self.checkpoint(),
            // It writes a row again, which may fail a transaction.
            18 if self.transactions.is_empty() => super::intruders::move_away(self),
            _ => self.check_all(),
        }
        if self.rng.percent(30) {
            self.change_neighbours();
        }
        if self.rng.percent(20) {
            self.change_options();
        }
        if self.program.lifetime.is_some() && self.rng.percent(20) {
            self.change_window();
        }
        if self.rng.percent(30) {
            self.check_follower();
        }
        self.check_levels();
    }

    /// Changes options of the open store. Another filter policy is refused if the store has no filters.
    fn change_options(&mut self) {
        let changes = config::changes(&mut self.rng);
        self.ok("set_options", self.db().set_options(changes));
        let policy = config::filters(&mut self.rng);
        let changed = self.db().set_options(changes.filter_policy(policy));
        let is_expected = matches!(changed, Ok(()) | Err(Error::InvalidArgument(_)));
        assert!(is_expected, "{}: {changed:?}", self.what());
        self.calls += 2;
    }

    /// A copy holds what the store held, even after the store has changed.
    fn checkpoint(&mut self) {
        let target = self.place.path("copy");
        self.ok("checkpoint", self.db().checkpoint(&target));
        let again = self.db().checkpoint(&target);
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{}: {again:?}", self.what());
        if self.rng.percent(50) {
            self.ok("compact during a checkpoint", self.db().compact());
        }
        let read_only = self.rng.percent(50);
        let options = self.options().read_only(read_only);
        let copy = self.ok("open a checkpoint", options.open(&target));
        self.check_other(&copy);
        if !read_only {
            self.ok("write to a checkpoint", copy.put(b"only in the copy", b""));
            self.ok("compact a checkpoint", copy.compact());
        }
        drop(copy);
        self.place.remove_store("copy");
        self.check_all();
        self.calls += 3;
    }

    pub fn reopen(&mut self) {
        if self.rng.percent(15) {
            super::intruders::lose_lock(self);
        }
        if self.rng.percent(10) {
            super::intruders::take_names(self);
        }
        self.close();
        if self.rng.percent(40) {
            self.damaged += self.place.damage_sidecars(&mut self.rng);
        }
        if self.rng.percent(15) {
            self.repair();
        }
        if self.rng.percent(25) {
            self.read_only();
        }
        if self.rng.percent(20) {
            let opened = self.options().open(self.place.store());
            drop(self.ok("open for a moment", opened));
        }
        if self.rng.percent(20) {
            self.check_follower();
        }
        self.open();
        self.neighbours.check(self.open.as_ref().unwrap(), &self.what());
        self.check_all();
        self.check_levels();
    }

    /// A repair of a sound store changes no answer, even without the manifest.
    fn repair(&mut self) {
        // Of the time, a repair without the manifest knows only what the logs say.
        let without = self.rng.percent(50) && !self.is_set_back();
        if without {
            self.place.remove_manifest();
        }
        let repaired = self.options().repair(self.place.store());
        let report = self.ok("repair", repaired);
        let kept = report.lost.is_empty() && report.logs.is_none() && report.set_aside.is_empty();
        assert!(kept, "{}: repair, without manifest {without}: {report:?}", self.what());
        self.calls += 1;
    }

    /// Two readers share the closed store and change nothing.
    fn read_only(&mut self) {
        let mut open = || {
            let options = self.options().read_only(true);
            self.ok("open read-only", options.open(self.place.store()))
        };
        let (first, second) = (open(), open());
        self.check_other(&first);
        let locked = self.options().open(self.place.store()).err();
        assert!(matches!(locked, Some(Error::Locked { .. })), "{}: {locked:?}", self.what());
        drop(first);
        self.check_other(&second);
        let refused = [second.put(b"key", b"value"), second.delete(b"key"), second.compact()];
        let all_refused = refused.iter().all(|refused| matches!(refused, Err(Error::ReadOnly)));
        assert!(all_refused, "{}: a read-only store takes writes: {refused:?}", self.what());
    }

    /// The end: checks everything once more, at rest, and verifies.
    pub fn finish(&mut self) {
        if self.program.lifetime.is_some() {
            self.pass_all();
        }
        self.ok("wait_for_compaction", self.db().wait_for_compaction());
        self.verify();
        self.ok("compact", self.db().compact());
        // Nothing is left that time buckets hide.
        self.ok("wait_for_compaction", self.db().wait_for_compaction());
        let left: u64 = self.db().stats().levels.iter().map(|level| level.keys).sum();
        let named = self.neighbours.names().count() + usize::from(self.home.name().is_some());
        // The catalog has a row for each keyspace, and the next number.
        let of_catalog = if self.has_keyspaces() { named + 1 } else { 0 };
        let rows = self.model.len() + self.neighbours.rows() + of_catalog;
        // Time buckets are not compacted, and go once all of their rows have expired.
        if self.program.lifetime.is_none() || self.program.all_expire() {
            self.same("entries after compact", left, rows as u64);
        }
        self.verify();
        self.check_all();
        self.check_levels();
        self.close();
    }
}
