//! The option `--wait`: waits for a store or a guard that another process has open.

use crate::notice::notice;
use sidebloom::Error;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// However long it takes.
    Forever,
    /// At most this long.
    AtMost(Duration),
}

/// The meaning of `--wait` alone.
pub const FOREVER: &str = "forever";

/// Between two attempts to open.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits longer than this are reported.
const SILENT: Duration = Duration::from_secs(1);

impl Wait {
    /// Reads seconds, or [`FOREVER`].
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == FOREVER {
            return Ok(Wait::Forever);
        }
        let seconds = text.parse().map_err(|e| format!("{e}; give a number of seconds"))?;
        Duration::try_from_secs_f64(seconds).map(Wait::AtMost).map_err(|e| e.to_string())
    }

    /// Calls `open` until the lock is free. Failed attempts change nothing, so interrupts are safe.
    pub fn retry<T>(self, mut open: impl FnMut() -> sidebloom::Result<T>) -> sidebloom::Result<T> {
        let started = Instant::now();
        let mut is_reported = false;
        loop {
            let lock = match open() {
                Err(Error::Locked { path }) => path,
                outcome => return outcome,
            };
            let waited = started.elapsed();
            let left = match self {
                Wait::AtMost(limit) if waited >= limit => return Err(Error::Locked { path: lock }),
                Wait::AtMost(limit) => limit - waited,
                Wait::Forever => PAUSE,
            };
            if waited >= SILENT && !std::mem::replace(&mut is_reported, true) {
                let dir = lock.parent().unwrap_or(Path::new("")).display();
                notice(format_args!("waiting for {dir}, which another process has open"));
            }
            sleep(PAUSE.min(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_number_of_seconds_or_has_no_end() {
        assert_eq!(Wait::parse(FOREVER), Ok(Wait::Forever));
        assert_eq!(Wait::parse("2.5"), Ok(Wait::AtMost(Duration::from_millis(2500))));
        assert_eq!(Wait::parse("0"), Ok(Wait::AtMost(Duration::ZERO)));
        assert!(["", "soon", "-1", "nan", "inf", "1e300"].iter().all(|text| Wait::parse(text).is_err()));
    }

    #[test]
    fn only_a_lock_is_waited_for_and_the_last_error_names_it() {
        let mut attempts = 0;
        let locked = || Error::Locked { path: "store/LOCK".into() };
        let opened = Wait::Forever.retry(|| {
            attempts += 1;
            if attempts < 3 { Err(locked()) } else { Ok(attempts) }
        });
        assert_eq!(opened.unwrap(), 3);
        let refused = Wait::Forever.retry(|| Err::<(), _>(Error::ReadOnly));
        assert!(matches!(refused, Err(Error::ReadOnly)));
        let started = Instant::now();
        let refused = Wait::AtMost(Duration::from_millis(120)).retry(|| Err::<(), _>(locked()));
        assert!(matches!(refused, Err(Error::Locked { .. })));
        assert!(started.elapsed() >= Duration::from_millis(120));
    }
}
