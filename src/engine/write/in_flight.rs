//! Groups that are in the log, and whose writers insert them into the memtable without holding the log.
//!
//! 1. The holder of the log appends a group and [begins](InFlight::begin) its insertion. Then it lets the
//!    next writer have the log, and inserts.
//! 2. Insertions [end](InFlight::end) in any order, but become visible in the order of the log: whoever ends
//!    the oldest one shows it, and all after it that have ended.
//! 3. A write returns once it is visible, so its writer reads it, and a later one is newer.
//!
//! Whoever replaces the memtable or looks for keys in it holds the log, and first waits for all insertions
//! ([`wait_for_all`](InFlight::wait_for_all)). If one panics, nothing after it becomes visible, and the store
//! is read-only. If the store fails in any other way, such as a flush that fails, insertions still end: what
//! is in the log is acknowledged.

use crate::engine::shared::Shared;
use crate::error::Result;
use crate::key::Seq;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use std::collections::VecDeque;

/// How often a writer looks before it lets the kernel run another thread: a few microseconds, in which a
/// writer on another CPU gets further. To sleep and be woken takes longer than a put.
pub(super) const LOOKS: usize = if cfg!(sidebloom_schedules) { 2 } else { 12 };
/// How long it waits between two looks, each of which takes the cache line away from the other writer.
const PAUSES: usize = 8;

/// Waits before the next look.
pub(super) fn pause() {
    (0..PAUSES).for_each(|_| std::hint::spin_loop());
}

/// The insertions that have begun and are not visible yet.
#[derive(Default)]
pub(super) struct InFlight {
    insertions: Mutex<Insertions>,
    /// Bytes of those that have not ended.
    bytes: AtomicUsize,
}

#[derive(Default)]
struct Insertions {
    /// Oldest first.
    groups: VecDeque<Insertion>,
    /// Threads that sleep until an insertion ends.
    sleepers: usize,
}

struct Insertion {
    /// The group's last sequence number.
    last: Seq,
    has_ended: bool,
}

impl InFlight {
    /// Begins to insert a group, which is not empty. The caller holds the log.
    pub fn begin(&self, last: Seq, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        lock(&self.insertions).groups.push_back(Insertion { last, has_ended: false });
    }

    /// Ends the insertion of a group, with the same arguments, and shows what can be shown.
    pub fn end(&self, last: Seq, bytes: usize, shared: &Shared) {
        let mut insertions = lock(&self.insertions);
        let groups = &mut insertions.groups;
        if let Some(group) = groups.iter_mut().find(|group| group.last == last) {
            group.has_ended = true;
        }
        let mut newest = None;
        while groups.front().is_some_and(|oldest| oldest.has_ended) {
            newest = groups.pop_front().map(|group| group.last);
        }
        if let Some(newest) = newest {
            shared.show(newest);
        }
        self.bytes.fetch_sub(bytes, Ordering::Release);
        let sleepers = insertions.sleepers;
        drop(insertions);
        if sleepers > 0 {
            shared.wake_waiters();
        }
    }

    /// Bytes of the insertions that have not ended. The caller holds the log.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Waits until all insertions are visible. The caller holds the log, so none begins.
    #[inline]
    pub fn wait_for_all(&self, shared: &Shared) -> Result<()> {
        if self.bytes() == 0 { Ok(()) } else { self.wait(shared, || self.bytes() == 0) }
    }

    /// Waits until a number is visible.
    pub fn wait_for(&self, last: Seq, shared: &Shared) -> Result<()> {
        self.wait(shared, || shared.visible() >= last)
    }

    #[cold]
    fn wait(&self, shared: &Shared, done: impl Fn() -> bool) -> Result<()> {
        for _ in 0..LOOKS {
            if done() {
                return Ok(());
            }
            pause();
        }
        lock(&self.insertions).sleepers += 1;
        let mut control = shared.control.lock();
        let waited = loop {
            if done() {
                break Ok(());
            }
            if let Err(error) = shared.check_no_panic() {
                break Err(error);
            }
            control = shared.wait_for_progress(control);
        };
        drop(control);
        lock(&self.insertions).sleepers -= 1;
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::error::Error;
    use crate::support::fast_dir;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    #[test]
    fn groups_become_visible_in_the_order_of_the_log() {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        let (shared, in_flight) = (&db.engine().shared, InFlight::default());
        let before = shared.visible();
        in_flight.begin(before + 1, 10);
        in_flight.begin(before + 3, 20);
        in_flight.begin(before + 4, 30);
        in_flight.end(before + 3, 20, shared);
        assert_eq!((shared.visible(), in_flight.bytes()), (before, 40), "the oldest is not there yet");
        in_flight.end(before + 1, 10, shared);
        assert_eq!((shared.visible(), in_flight.bytes()), (before + 3, 30));
        in_flight.wait_for(before + 3, shared).unwrap();
        in_flight.end(before + 4, 30, shared);
        assert_eq!(shared.visible(), before + 4);
        in_flight.wait_for_all(shared).unwrap();
    }

    #[test]
    fn i4_a_flush_waits_for_groups_that_are_not_in_the_memtable_yet() {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        db.put("a", "1").unwrap();
        let (shared, in_flight) = (&db.engine().shared, &db.engine().writer.in_flight);
        let last = shared.visible();
        in_flight.begin(last, 10);
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| db.flush());
            std::thread::sleep(Duration::from_millis(50));
            let waits = !flush.is_finished() && shared.live().max_seq() == 0;
            in_flight.end(last, 10, shared); // Otherwise a failed test would not end: closing waits as well.
            flush.join().unwrap().unwrap();
            assert!(waits);
        });
        assert_eq!(shared.live().max_seq(), last);
    }

    /// What those who wait for a group return, when `fate` befalls it. It is given the group's number.
    fn waits(fate: impl FnOnce(&Shared, &InFlight, Seq)) -> [Result<()>; 2] {
        let dir = fast_dir();
        let db = Options::new().open(dir.path()).unwrap();
        let (shared, in_flight) = (&db.engine().shared, InFlight::default());
        let next = shared.visible() + 1;
        in_flight.begin(next, 10);
        std::thread::scope(|scope| {
            let one = scope.spawn(|| in_flight.wait_for(next, shared));
            let all = scope.spawn(|| in_flight.wait_for_all(shared));
            std::thread::sleep(Duration::from_millis(20));
            fate(shared, &in_flight, next);
            [one, all].map(|wait| wait.join().unwrap())
        })
    }

    #[test]
    fn i5_who_waits_for_a_group_that_is_never_inserted_gets_an_error() {
        let waits = waits(|shared, _, next| {
            let panics = || shared.poison_on_panic(|| panic!("an insertion panics"));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
            assert_eq!(shared.visible(), next - 1);
        });
        assert!(waits.iter().all(|wait| matches!(wait, Err(Error::Poisoned { .. }))), "{waits:?}");
    }

    /// A flush fails between the append of a group and its insertion.
    #[test]
    fn i5_what_is_in_the_log_is_acknowledged_although_the_store_has_failed() {
        let waits = waits(|shared, in_flight, next| {
            shared.stop_writing("a flush has failed".into());
            std::thread::sleep(Duration::from_millis(20));
            in_flight.end(next, 10, shared);
        });
        assert!(waits.iter().all(Result::is_ok), "{waits:?}");
    }
}
