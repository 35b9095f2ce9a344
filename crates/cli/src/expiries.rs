//! The keys of `sidebloom stats` that expire.

use crate::context::Failure;
use crate::human;
use serde::Serialize;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Serialize)]
pub struct Expiries {
    /// Keys that expire, or have expired, and about how many of them have.
    expiring: u64,
    expired: u64,
    /// When the next ones do, in seconds since 1970.
    next_expiry: Option<f64>,
}

impl Expiries {
    pub fn new(expiring: u64, expired: u64, next: Option<SystemTime>) -> Self {
        let seconds = |at: SystemTime| Some(at.duration_since(UNIX_EPOCH).ok()?.as_secs_f64());
        Expiries { expiring, expired, next_expiry: next.and_then(seconds) }
    }

    /// Says how many of `keys` expire, unless none does.
    pub fn print(&self, keys: u64, out: &mut impl Write) -> Result<(), Failure> {
        if self.expiring == 0 {
            return Ok(());
        }
        let (expiring, share) =
            (human::count(self.expiring), human::percent(self.expired as f64, keys as f64));
        let next = self.until_next().map_or(String::new(), |wait| {
            format!("; the next do in about {}", human::nanos(wait.as_nanos() as f64))
        });
        Ok(writeln!(out, "keys that expire: {expiring}; of all keys, about {share} have expired{next}")?)
    }

    fn until_next(&self) -> Option<Duration> {
        let next = UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(self.next_expiry?).ok()?)?;
        next.duration_since(SystemTime::now()).ok()
    }
}
