//! What must hold after every operation: the store is sound and equals the model, also opened twice.

use super::player::Player;
use super::program::Span;
use super::rows::Walk;
use sidebloom::{Db, Error};

impl Player<'_> {
    /// All rows, from the ends that this configuration prefers. Not in the transcript.
    pub fn check_all(&mut self) {
        let turns = self.rng.next();
        Walk::new(self.rows().iter(), &Span::All, &self.model).finish(turns, || self.what(), |_| ());
        self.calls += 1;
    }

    /// Every file is sound.
    pub fn verify(&mut self) {
        let report = self.ok("verify", self.db().verify());
        assert!(report.is_ok(), "{}: verify: {:?}", self.what(), report.problems);
        self.calls += 1;
    }

    /// The store's counters agree with each other.
    pub fn check_levels(&mut self) {
        let stats = self.db().stats();
        let sound = stats.segments_quarantined == 0
            && stats.shortages == 0
            && stats.filter_negatives + stats.filter_false_positives <= stats.filter_probes
            && stats.levels.iter().all(|level| {
                let runs = if level.level == 0 { level.segments } else { level.segments.min(1) };
                (level.runs == runs || level.level == 0 && self.has_keyspaces() && level.runs < runs)
                    && level.filters <= level.segments
                    && level.keys >= level.segments as u64
                    && (level.data_bytes > 0) == (level.segments > 0)
                    && (0.0..=1.0).contains(&level.expected_fpr)
            });
        assert!(sound, "{}: stats: {stats:?}", self.what());
        self.calls += 1;
    }

    /// A follower holds the model's contents once it has caught up, and immediately if it is new.
    pub fn check_follower(&mut self) {
        let follower = match self.follower.take() {
            Some(follower) => match follower.catch_up() {
                // Repairing an empty store without a manifest makes a new store.
                Err(Error::NotAStore { .. }) => return,
                outcome => {
                    self.ok("catch up", outcome);
                    follower
                }
            },
            None => {
                let options = self.options().follow(true);
                self.ok("follow", options.open(self.place.store()))
            }
        };
        self.check_other(&follower);
        if self.rng.percent(20) {
            let report = self.ok("verify what is followed", follower.verify());
            assert!(report.is_ok(), "{}: verify: {:?}", self.what(), report.problems);
        }
        if self.rng.percent(80) {
            self.follower = Some(follower);
        }
        self.calls += 1;
    }

    /// A second opening holds the model's contents.
    pub fn check_other(&mut self, db: &Db) {
        let turns = self.rng.next();
        let rows = self.ok("the keyspace in another opening", self.home.of(db));
        Walk::new(rows.iter(), &Span::All, &self.model).finish(turns, || self.what(), |_| ());
        for _ in 0..5 {
            let key = self.program.keys.near(&mut self.rng);
            let found = self.ok("get in another opening", rows.get(&key));
            self.same_value("get in another opening", &key, found.as_deref(), &self.model);
        }
        self.neighbours.check(db, &self.what());
        self.calls += 6;
    }
}
