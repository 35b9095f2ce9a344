//! When whole filters expire.

use super::super::catalog::Target;
use super::super::command::Call;
use super::numbers::integer;
use crate::filters::Filters;
use std::sync::Arc;

/// `EXPIRE name seconds [NX | XX | GT | LT]`
pub fn expire(call: &mut Call<'_>) {
    set(call, "expire", 1000, true);
}

/// `PEXPIRE name milliseconds [NX | XX | GT | LT]`
pub fn expire_millis(call: &mut Call<'_>) {
    set(call, "pexpire", 1, true);
}

/// `EXPIREAT name unix-seconds [NX | XX | GT | LT]`
pub fn expire_at(call: &mut Call<'_>) {
    set(call, "expireat", 1000, false);
}

/// `PEXPIREAT name unix-milliseconds [NX | XX | GT | LT]`
pub fn expire_at_millis(call: &mut Call<'_>) {
    set(call, "pexpireat", 1, false);
}

fn set(call: &mut Call<'_>, command: &str, unit: i64, is_relative: bool) {
    let Some(number) = integer(call.arg(2)) else {
        return call.replies.error("ERR value is not an integer or out of range");
    };
    let condition = match Condition::parse(call.args.get(3..).unwrap_or_default()) {
        Ok(condition) => condition,
        Err(error) => return call.replies.error(&error),
    };
    let Some(filters) = filters(call) else { return };
    let start = if is_relative { i64::try_from(filters.now()).unwrap_or(i64::MAX) } else { 0 };
    let Some(moment) = number.checked_mul(unit).and_then(|millis| millis.checked_add(start)) else {
        return call.replies.error(&format!("ERR invalid expire time in '{command}' command"));
    };
    let moment = u64::try_from(moment).unwrap_or(0).max(1);
    let set = filters
        .set_expiry(call.session.database, call.arg(1), Some(moment), |now| condition.holds(now, moment));
    reply(call, set);
}

/// `PERSIST name`
pub fn persist(call: &mut Call<'_>) {
    let Some(filters) = filters(call) else { return };
    let set = filters.set_expiry(call.session.database, call.arg(1), None, |now| now.is_some());
    reply(call, set);
}

fn reply(call: &mut Call<'_>, set: crate::filters::Result<bool>) {
    match set {
        Ok(is_set) => call.replies.int(u64::from(is_set)),
        Err(refusal) => call.replies.error(&refusal.to_string()),
    }
}

/// The store of filters, unless the name is a guard's.
fn filters(call: &mut Call<'_>) -> Option<Arc<Filters>> {
    let own = call.server.catalog.own().map(|own| Arc::clone(&own.filters));
    if own.is_none() || matches!(call.target(call.arg(1)), Some(Target::Guard(_))) {
        call.replies.error("READONLY a guard does not expire");
        return None;
    }
    own
}

/// On what it depends whether a new expiry is set.
#[derive(Default)]
struct Condition {
    only_first: bool,
    only_again: bool,
    only_later: bool,
    only_sooner: bool,
}

impl Condition {
    /// Returns Redis' error.
    fn parse(words: &[&[u8]]) -> Result<Self, String> {
        let mut condition = Condition::default();
        for word in words {
            let option = match word.to_ascii_uppercase().as_slice() {
                b"NX" => &mut condition.only_first,
                b"XX" => &mut condition.only_again,
                b"GT" => &mut condition.only_later,
                b"LT" => &mut condition.only_sooner,
                _ => return Err(format!("ERR Unsupported option {:.128}", word.escape_ascii().to_string())),
            };
            *option = true;
        }
        let Condition { only_first, only_again, only_later, only_sooner } = condition;
        if only_first && (only_again || only_later || only_sooner) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if only_later && only_sooner {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(condition)
    }

    /// A filter that does not expire counts as one that expires after all others.
    fn holds(&self, now: Option<u64>, then: u64) -> bool {
        !(self.only_first && now.is_some()
            || self.only_again && now.is_none()
            || self.only_later && now.is_none_or(|now| then <= now)
            || self.only_sooner && now.is_some_and(|now| then >= now))
    }
}

/// `TTL name`: in seconds; -1 if it does not expire, -2 if there is none.
pub fn seconds_left(call: &mut Call<'_>) {
    tell(call, |moment, now| moment.saturating_sub(now).saturating_add(500) / 1000);
}

/// `PTTL name`
pub fn millis_left(call: &mut Call<'_>) {
    tell(call, u64::saturating_sub);
}

/// `EXPIRETIME name`: in seconds since 1970, rounded as Redis does.
pub fn moment(call: &mut Call<'_>) {
    tell(call, |moment, _| moment.saturating_add(500) / 1000);
}

/// `PEXPIRETIME name`
pub fn moment_millis(call: &mut Call<'_>) {
    tell(call, |moment, _| moment);
}

fn tell(call: &mut Call<'_>, number: impl FnOnce(u64, u64) -> u64) {
    let now = call.server.catalog.own().map_or(0, |own| own.filters.now());
    match call.target(call.arg(1)) {
        None => call.replies.signed(-2),
        Some(Target::Guard(_)) => call.replies.signed(-1),
        Some(Target::Filter(filter)) => match filter.expires_at() {
            None => call.replies.signed(-1),
            Some(moment) => call.replies.int(number(moment, now)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_as_in_redis() {
        let holds = |words: &[&str], now, then| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            Condition::parse(&words).ok().map(|condition| condition.holds(now, then))
        };
        for (words, now, then, expected) in [
            (&[][..], None, 5, Some(true)),
            (&["NX"], None, 5, Some(true)),
            (&["nx"], Some(9), 5, Some(false)),
            (&["XX"], None, 5, Some(false)),
            (&["XX"], Some(9), 5, Some(true)),
            (&["GT"], None, 5, Some(false)),
            (&["GT"], Some(5), 5, Some(false)),
            (&["GT"], Some(4), 5, Some(true)),
            (&["LT"], None, 5, Some(true)),
            (&["LT"], Some(5), 5, Some(false)),
            (&["XX", "LT"], None, 5, Some(false)),
            (&["NX", "XX"], None, 5, None),
            (&["GT", "LT"], None, 5, None),
            (&["NX", "GT"], None, 5, None),
            (&["nonsense"], None, 5, None),
        ] {
            assert_eq!(holds(words, now, then), expected, "{words:?} {now:?}");
        }
    }
}
