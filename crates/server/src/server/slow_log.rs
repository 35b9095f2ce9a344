//! The commands that took long: what `SLOWLOG` shows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Arguments of a command that are kept, and bytes of each.
const ARGS_MAX: usize = 8;
const ARG_BYTES_MAX: usize = 64;

/// One command that took long.
#[derive(Clone)]
pub struct SlowCommand {
    pub id: u64,
    /// Seconds since 1970.
    pub time: u64,
    pub micros: u64,
    pub args: Vec<Vec<u8>>,
    pub address: String,
    pub client_name: Vec<u8>,
}

/// The latest of them.
pub struct SlowLog {
    entries: Mutex<Entries>,
    /// Commands that take this long or longer are kept, in microseconds; negative for none.
    pub threshold_micros: AtomicI64,
    /// How many are kept.
    pub len_max: AtomicUsize,
}

#[derive(Default)]
struct Entries {
    latest: VecDeque<SlowCommand>,
    next_id: u64,
}

impl Default for SlowLog {
    /// Redis' own limits.
    fn default() -> Self {
        SlowLog {
            entries: Mutex::default(),
            threshold_micros: AtomicI64::new(10_000),
            len_max: AtomicUsize::new(128),
        }
    }
}

impl SlowLog {
    /// Whether a command that took this long is kept.
    #[inline]
    pub fn is_slow(&self, time: Duration) -> bool {
        let threshold = self.threshold_micros.load(Relaxed);
        u64::try_from(threshold).is_ok_and(|threshold| time.as_micros() >= u128::from(threshold))
    }

    pub fn push(&self, time: Duration, args: Vec<Vec<u8>>, address: String, client_name: Vec<u8>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut entries = self.entries();
        let id = entries.next_id;
        entries.next_id += 1;
        let micros = time.as_micros() as u64;
        let args = shortened(args);
        entries.latest.push_front(SlowCommand {
            id,
            time: now.as_secs(),
            micros,
            args,
            address,
            client_name,
        });
        entries.latest.truncate(self.len_max.load(Relaxed));
    }

    /// The latest first.
    pub fn latest(&self, max: usize) -> Vec<SlowCommand> {
        self.entries().latest.iter().take(max).cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.entries().latest.len()
    }

    pub fn clear(&self) {
        self.entries().latest.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shortened(mut args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let beyond = args.len().saturating_sub(ARGS_MAX);
    args.truncate(ARGS_MAX);
    for arg in args.iter_mut().filter(|arg| arg.len() > ARG_BYTES_MAX) {
        let more = arg.len() - ARG_BYTES_MAX;
        arg.truncate(ARG_BYTES_MAX);
        arg.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
    }
    if beyond > 0 {
        args.push(format!("... ({beyond} more arguments)").into_bytes());
    }
    args
}
