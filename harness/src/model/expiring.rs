//! Plays rows that expire, and time. The model loses a row when it expires.

use super::blob::Blob;
use super::player::Player;
use super::program::{Expiring, Write, dated};
use crate::contents::apply;
use crate::home::Home;
use sidebloom::{Batch, Expiry, TimeToLive};
use std::time::Duration;

/// No row that expires lives longer, in milliseconds.
const LIFETIME_MAX: u64 = 1_000_000_000;

impl Player<'_> {
    pub fn expiring(&mut self, op: &Expiring) {
        match op {
            Expiring::Put(key, value, millis) => {
                self.ok("put_with", self.rows().put_with(key, value, after(*millis)));
                self.model.insert(key.clone(), self.dying(value, *millis));
            }
            Expiring::InsertNew(key, value, millis) => {
                let is_new = self.rows().insert_new_with(key, value, after(*millis));
                let is_new = self.ok("insert_new_with", is_new);
                self.same("insert_new_with", is_new, !self.model.contains_key(key));
                let value = self.dying(value, *millis);
                self.model.entry(key.clone()).or_insert(value);
            }
            Expiring::Batch(rows) => {
                let mut batch = Batch::new();
                let mut of_rows = batch.keyspace(self.rows());
                for (key, value, millis) in rows {
                    match millis {
                        Some(millis) => of_rows.put_with(key, value, after(*millis)),
                        None => of_rows.put(key, value),
                    }
                }
                self.ok("batch", self.rows().write(batch));
                for (key, value, millis) in rows {
                    let value =
                        millis.map_or_else(|| self.put_now(value), |millis| self.dying(value, millis));
                    self.model.insert(key.clone(), value);
                }
            }
            Expiring::Touch(key, millis) => {
                let touched = self.rows().touch(key, millis.map_or(Expiry::never(), after));
                let touched = self.ok("touch", touched);
                self.same("touch", touched, self.model.contains_key(key));
                if let Some(value) = self.model.get(key).cloned() {
                    let value = value.until(millis.map_or(u64::MAX, |millis| self.now() + millis));
                    self.model.insert(key.clone(), value);
                }
            }
            Expiring::TimeToLive(key) => {
                let found = self.ok("time_to_live", self.rows().time_to_live(key));
                let expected = match self.model.get(key).map(|value| value.expiry()) {
                    None => TimeToLive::Missing,
                    Some(u64::MAX) => TimeToLive::Unlimited,
                    Some(until) => TimeToLive::Remaining(Duration::from_millis(until - self.now())),
                };
                self.same("time_to_live", found, expected);
            }
            Expiring::Pass(millis) => {
                self.clock.advance(Duration::from_millis(*millis));
                self.expire();
            }
            Expiring::PassToExpiry => {
                let next = self.model.iter().min_by_key(|(_, value)| value.expiry());
                let Some((key, until)) = next.map(|(key, value)| (key.clone(), value.expiry())) else {
                    return;
                };
                if until < u64::MAX {
                    self.clock.advance(Duration::from_millis(until - self.clock.millis()));
                    self.expire();
                    let found = self.ok("get", self.rows().get(&key));
                    self.same_value("get", &key, found.as_deref(), &self.model);
                }
            }
            Expiring::SetBack(key, millis) => {
                self.ok("put_with", self.rows().put_with(key, "", after(1)));
                self.model.insert(key.clone(), self.dying(&Blob::from(&b""[..]), 1));
                // The manifest has the time, for readers in other processes, too.
                self.ok("flush", self.db().flush());
                self.latest = self.now();
                self.clock.set_back(Duration::from_millis(*millis));
            }
        }
    }

    /// The store's time, in milliseconds.
    fn now(&self) -> u64 {
        self.clock.millis().max(self.latest)
    }

    /// Whether the time of day is earlier than what the store has shown.
    pub fn is_set_back(&self) -> bool {
        self.clock.millis() < self.latest
    }

    /// When a row expires that is written now and does not say so.
    pub fn until(&self) -> Option<u64> {
        self.program.lifetime.map(|millis| self.now() + millis)
    }

    /// The value of a write now that does not say when it expires.
    pub fn put_now(&self, value: &Blob) -> Blob {
        value.until_or_never(self.until())
    }

    /// Applies writes of now to the model.
    pub fn apply(&mut self, writes: &[Write]) {
        let until = self.until();
        apply(&mut self.model, &*dated(writes, until));
    }

    /// Rows go on living as long; whether by a window may change.
    pub fn change_window(&mut self) {
        let Some(millis) = self.program.lifetime else { return };
        self.home = Home::random_of(&mut self.rng, Duration::from_millis(millis));
        self.ok("set_options", self.rows().set_options(self.home.options()));
    }

    /// So much time passes that all rows expire that ever do.
    pub fn pass_all(&mut self) {
        let behind = self.latest.saturating_sub(self.clock.millis());
        self.clock.advance(Duration::from_millis(behind + LIFETIME_MAX));
        self.expire();
        self.ok("flush", self.db().flush());
    }

    /// What has expired by now is gone.
    pub fn expire(&mut self) {
        let now = self.now();
        self.model.retain(|_, value| !value.has_expired(now));
    }

    /// The value of a write now that expires after so many milliseconds.
    fn dying(&self, value: &Blob, millis: u64) -> Blob {
        value.until(self.now() + millis)
    }
}

fn after(millis: u64) -> Expiry {
    Expiry::after(Duration::from_millis(millis))
}
