//! The options of `BF.ADD` that say when an item expires, spelled as those of `SET` in Redis.

use super::numbers::integer;
use sidebloom::Expiry;
use sidebloom::guard::Guard;
use std::time::{Duration, UNIX_EPOCH};

const SYNTAX: &str = "ERR syntax error";
const NUMBER: &str = "ERR value is not an integer or out of range";
const TIME: &str = "ERR invalid expire time in 'bf.add' command";

/// What follows the item: nothing, or `EX seconds`, `PX milliseconds`, `EXAT unix-seconds` or `PXAT
/// unix-milliseconds`. The moment, by the guard's clock; or what is wrong.
pub fn expiry_of(guard: &Guard, options: &[&[u8]]) -> Result<Option<Expiry>, &'static str> {
    let (option, number) = match options {
        [] => return Ok(None),
        [option, number] => (option.to_ascii_uppercase(), *number),
        _ => return Err(SYNTAX),
    };
    let (unit, is_moment) = match option.as_slice() {
        b"EX" => (1000, false),
        b"PX" => (1, false),
        b"EXAT" => (1000, true),
        b"PXAT" => (1, true),
        _ => return Err(SYNTAX),
    };
    let millis = integer(number).ok_or(NUMBER)?.checked_mul(unit).ok_or(TIME)?;
    let millis = u64::try_from(millis).ok().filter(|millis| *millis > 0).ok_or(TIME)?;
    let duration = Duration::from_millis(millis);
    let expiry = if is_moment {
        Expiry::at(UNIX_EPOCH.checked_add(duration).ok_or(TIME)?)
    } else {
        Expiry::after(duration)
    };
    guard.moment_of(expiry).map(Some).map_err(|_| TIME)
}
