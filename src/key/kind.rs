//! Times, and what an entry says of its key.

use crate::error::{Error, Result};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment of a store's clock: milliseconds since 1970, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(u64);

impl Time {
    /// Before everything: no row has expired.
    pub const START: Time = Time(0);
    /// The first moment at which a row may expire.
    pub const FIRST: Time = Time(1);
    /// The last moment of the year 9999. No row expires later.
    pub const MAX: Time = Time(253_402_300_799_999);
    /// Later than any clock shows.
    pub const NEVER: Time = Time(u64::MAX);
    /// How many bytes a moment up to [`MAX`](Self::MAX) takes in a log.
    pub const BYTES: usize = 6;

    /// The moment after so many milliseconds; [`MAX`](Self::MAX) if that is later.
    pub fn of_millis(millis: u64) -> Self {
        Time(millis).min(Self::MAX)
    }

    /// A moment as a file has it, which may be after [`MAX`](Self::MAX).
    pub(crate) fn from_stored(millis: u64) -> Self {
        Time(millis)
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// The moment of the system's clock; [`START`](Self::START) before 1970.
    pub fn of_system(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self::of_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// This moment on the system's clock.
    pub fn to_system(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }

    /// When a row expires that is written at this moment and lives so many milliseconds.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] after the year 9999.
    pub(crate) fn after(self, lifetime: Time) -> Result<Self> {
        let time = Time(self.0.saturating_add(lifetime.0));
        if time < Self::MAX { Ok(time) } else { Err(too_late()) }
    }

    /// How long it is until then; nothing if it has passed.
    pub fn saturating_since(self, earlier: Time) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The bytes in a log.
    pub fn encoded(self) -> [u8; Self::BYTES] {
        let [a, b, c, d, e, f, ..] = self.0.to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// The moment with these bytes; `None` if no row may expire then.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, d, e, f] = *bytes.first_chunk::<{ Self::BYTES }>()?;
        let time = Time(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]));
        (time <= Self::MAX).then_some(time)
    }
}

/// The error for a row that would expire after the last moment that a clock shows.
pub(super) fn too_late() -> Error {
    Error::InvalidArgument("a row would expire after the year 9999".into())
}

/// What an entry says of its key: that it was deleted, or that it has a value, perhaps until some moment.
///
/// One number, so that most entries pay nothing for those that expire: the moment at which the value is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EntryKind(u64);

impl EntryKind {
    /// The key was deleted. Hides all older entries of the key.
    pub const TOMBSTONE: EntryKind = EntryKind(0);
    /// The key has a value, which does not expire.
    pub const PUT: EntryKind = EntryKind(u64::MAX);

    /// The key has a value until `time`, and then is as if deleted.
    pub fn put_until(time: Time) -> Self {
        EntryKind(time.0.clamp(Time::FIRST.0, Time::MAX.0))
    }

    /// When the value expires; `None` for one that does not, and for a tombstone.
    #[inline]
    pub fn expiry(self) -> Option<Time> {
        (self != Self::TOMBSTONE && self != Self::PUT).then_some(Time(self.0))
    }

    /// Whether readers see the value at a moment.
    #[inline]
    pub fn is_alive(self, now: Time) -> bool {
        self.0 > now.0
    }

    /// What is kept of an entry that is written again at a moment: of one whose value has expired, a
    /// tombstone, which hides older entries as it does.
    #[inline]
    pub fn kept(self, now: Time, value: &[u8]) -> (Self, &[u8]) {
        if self.is_alive(now) { (self, value) } else { (Self::TOMBSTONE, &[]) }
    }
}

impl fmt::Debug for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.expiry() {
            Some(time) => write!(f, "PutUntil({})", time.millis()),
            None if *self == Self::PUT => f.write_str("Put"),
            None => f.write_str("Tombstone"),
        }
    }
}
