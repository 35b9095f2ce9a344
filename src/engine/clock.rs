//! The clock of an open store, by which rows expire. It never runs backwards (I15).
//!
//! 1. It shows the time of day, or the latest moment that it has shown if that is later. So nobody sees a row
//!    again that somebody has seen expired.
//! 2. The log has that moment, with the first write of a row that expires after a second without one, and
//!    with any other write once a later moment was shown. Whenever the manifest is changed, it has the moment
//!    too. The next opening starts from there.
//! 3. If the time of day jumps back, the clock stands still until it has caught up. If it jumps ahead, rows
//!    expire early, and the clock stands still once the time of day is right again.

use crate::error::Result;
use crate::key::{EntryKind, Expiry, Moment, Time};
use crate::sync::WallClock;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::wal::Batch;
use std::sync::Arc;

/// How long the log goes without the time while there are writes, in milliseconds.
const SAID_EVERY_MILLIS: u64 = 1000;

/// The clock of a store.
pub(crate) struct Clock {
    time_of_day: Arc<dyn WallClock>,
    /// The latest moment that it has shown, in milliseconds.
    latest: AtomicU64,
    /// The latest moment in the log.
    said: AtomicU64,
    /// Whether the store may have a row that expires.
    is_needed: AtomicBool,
}

impl Clock {
    pub fn new(time_of_day: Arc<dyn WallClock>) -> Self {
        let [latest, said] = [0, 0].map(AtomicU64::new);
        Clock { time_of_day, latest, said, is_needed: AtomicBool::new(false) }
    }

    /// The moment now.
    pub fn now(&self) -> Time {
        let now = Time::of_system(self.time_of_day.now());
        self.advance(now);
        Time::of_millis(self.latest.load(Ordering::Acquire))
    }

    /// Makes it show at least this moment.
    pub fn advance(&self, time: Time) {
        // Mostly, somebody else has read it in the same millisecond.
        if self.latest.load(Ordering::Acquire) < time.millis() {
            self.latest.fetch_max(time.millis(), Ordering::AcqRel);
        }
    }

    /// Called before a row that expires becomes visible.
    #[inline]
    pub fn note_expiring(&self) {
        if !self.is_needed() {
            self.is_needed.store(true, Ordering::Release);
        }
    }

    /// Whether a visible row may expire. Loaded after the visible sequence number, it is exact for all rows
    /// up to that.
    #[inline]
    pub fn is_needed(&self) -> bool {
        self.is_needed.load(Ordering::Acquire)
    }

    /// The moment for reads that begin now. As long as no row expires, the clock is not read.
    #[inline]
    pub fn moment(&self) -> Time {
        if self.is_needed() { self.now() } else { Time::START }
    }

    /// The latest moment that it has shown, for the manifest; `None` if no row expires.
    pub fn shown(&self) -> Option<Time> {
        let latest = Time::of_millis(self.latest.load(Ordering::Acquire));
        (self.is_needed() && latest > Time::START).then_some(latest)
    }

    /// The log has this moment.
    pub fn note_said(&self, time: Time) {
        self.advance(time);
        self.said.fetch_max(time.millis(), Ordering::AcqRel);
    }

    /// Whether it has shown a moment that the next write must tell the log.
    #[inline]
    pub fn is_unsaid(&self) -> bool {
        self.is_needed() && self.latest.load(Ordering::Acquire) >= self.say_from()
    }

    fn say_from(&self) -> u64 {
        self.said.load(Ordering::Acquire).saturating_add(SAID_EVERY_MILLIS)
    }

    /// When a put now expires; `None` for never.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an expiry that is not possible.
    pub fn moment_of(&self, expiry: Expiry) -> Result<Option<Time>> {
        Ok(match expiry.checked()? {
            Moment::Never => None,
            Moment::At(time) => Some(time),
            Moment::After(lifetime) => Some(self.now().after(lifetime)?),
        })
    }

    /// The kind of a put now that expires as `expiry` says.
    ///
    /// # Errors
    /// The errors of [`moment_of`](Self::moment_of).
    pub fn kind_of(&self, expiry: Expiry) -> Result<EntryKind> {
        let Some(until) = self.moment_of(expiry)? else { return Ok(EntryKind::PUT) };
        self.note_expiring();
        Ok(EntryKind::put_until(until))
    }

    /// Sets when the rows of a batch expire, now that it is written, and adds the time if the log is to have
    /// it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if one would expire too late.
    #[cold]
    pub fn date(&self, batch: &mut Batch) -> Result<()> {
        let now = self.now();
        batch.date(now, now.millis() >= self.say_from())
    }
}

/// When a read takes place.
#[derive(Clone, Copy)]
pub(crate) enum ReadTime<'a> {
    /// Now. The clock is read only if a row expires.
    Now(&'a Clock),
    /// At this moment.
    At(Time),
}

impl ReadTime<'_> {
    /// Whether the read sees the value of such an entry.
    #[inline(always)]
    pub fn shows(self, kind: EntryKind) -> bool {
        kind == EntryKind::PUT || self.shows_expiring(kind)
    }

    #[cold]
    fn shows_expiring(self, kind: EntryKind) -> bool {
        kind.expiry().is_some() && kind.is_alive(self.moment())
    }

    /// Its moment.
    pub fn moment(self) -> Time {
        match self {
            ReadTime::Now(clock) => clock.now(),
            ReadTime::At(time) => time,
        }
    }
}
