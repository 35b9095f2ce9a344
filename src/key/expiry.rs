//! When a row expires, as a program says it.

use super::kind::{Time, too_late};
use crate::error::{Error, Result};
use std::time::{Duration, SystemTime};

/// When a row expires: from then on, it is as if deleted. See
/// [`Keyspace::put_with`](crate::Keyspace::put_with).
///
/// Moments are kept in milliseconds. A moment that has passed deletes the row at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(Spoken);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Never,
    At(SystemTime),
    After(Duration),
}

/// What an [`Expiry`] says, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Never,
    At(Time),
    /// So many milliseconds after the row is written.
    After(Time),
}

impl Expiry {
    /// The row does not expire, whatever its keyspace says.
    pub fn never() -> Self {
        Expiry(Spoken::Never)
    }

    /// The row expires at this moment, by the store's clock. After the year 9999 is an error when it is
    /// written.
    pub fn at(time: SystemTime) -> Self {
        Expiry(Spoken::At(time))
    }

    /// The row expires this long after it is written. Less than a millisecond is an error then, and so is
    /// what ends after the year 9999.
    pub fn after(duration: Duration) -> Self {
        Expiry(Spoken::After(duration))
    }

    /// What it says.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn checked(self) -> Result<Moment> {
        match self.0 {
            Spoken::Never => Ok(Moment::Never),
            Spoken::At(time) => {
                let time = Time::of_system(time);
                if time < Time::MAX { Ok(Moment::At(time.max(Time::FIRST))) } else { Err(too_late()) }
            }
            Spoken::After(duration) if duration < Duration::from_millis(1) => {
                let what =
                    format!("a row would expire {duration:?} after it is written: at least 1 ms is possible");
                Err(Error::InvalidArgument(what))
            }
            Spoken::After(duration) => {
                let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
                if millis < Time::MAX.millis() {
                    Ok(Moment::After(Time::of_millis(millis)))
                } else {
                    Err(too_late())
                }
            }
        }
    }
}
