//! When rows expire, from Python's arguments.

use crate::error::invalid;
use pyo3::prelude::*;
use sidebloom::Expiry;
use std::time::{Duration, SystemTime};

/// The seconds of a number or a `timedelta`.
pub fn duration(seconds: &Bound<'_, PyAny>) -> PyResult<Duration> {
    if let Ok(duration) = seconds.extract::<Duration>() {
        return Ok(duration);
    }
    let number: f64 = match seconds.call_method0("total_seconds") {
        Ok(total) => total.extract()?,
        Err(_) => seconds.extract()?,
    };
    Duration::try_from_secs_f64(number).map_err(|_| {
        invalid(format!("{number:?} seconds: a number from 0 on expected, of at most some 10**19"))
    })
}

/// `expire_after` (seconds, or a `timedelta`) or `expire_at` (seconds since 1970, or a `datetime` with a time
/// zone); `None` if neither is given.
///
/// # Errors
/// `InvalidArgumentError` if both are given, or one that is not possible.
pub fn expiry(after: Option<&Bound<'_, PyAny>>, at: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Expiry>> {
    match (after, at) {
        (None, None) => Ok(None),
        (Some(after), None) => Ok(Some(Expiry::after(duration(after)?))),
        (None, Some(at)) => {
            let seconds: f64 = match at.call_method0("timestamp") {
                Ok(_) if at.getattr("tzinfo")?.is_none() => {
                    return Err(invalid("expire_at: a datetime needs a time zone"));
                }
                Ok(seconds) => seconds.extract()?,
                Err(_) => at.extract()?,
            };
            let time = Duration::try_from_secs_f64(seconds)
                .ok()
                .and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
            time.map(|time| Some(Expiry::at(time)))
                .ok_or_else(|| invalid(format!("expire_at is {seconds:?}: a time from 1970 on expected")))
        }
        (Some(_), Some(_)) => Err(invalid("expire_after and expire_at exclude each other")),
    }
}
