//! Commands about one Bloom filter as a whole.

use super::super::catalog::Target;
use super::super::command::Call;
use super::guard_info::{self, BloomField};
use super::numbers::{integer, rate};
use crate::filters::{Bloom, Created, Filter, Kind, Parameters, Refusal};
use std::sync::Arc;

/// `BF.RESERVE name error_rate capacity [EXPANSION n] [NONSCALING]`
pub fn reserve(call: &mut Call<'_>) {
    match parameters(call) {
        Ok(parameters) => create(call, Parameters::Bloom(parameters)),
        Err(error) => call.replies.error(&error),
    }
}

fn parameters(call: &Call<'_>) -> Result<Bloom, String> {
    let error_rate = rate(call.arg(2)).ok_or("ERR bad error rate")?;
    if !(error_rate > 0.0 && error_rate < 1.0) {
        return Err("ERR error rate must be in the range (0.000000, 1.000000)".into());
    }
    let capacity = integer(call.arg(3)).ok_or("ERR bad capacity")?;
    let (mut expansion, mut is_fixed) = (None, false);
    let mut words = call.args.get(4..).unwrap_or_default().iter();
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case(b"NONSCALING") {
            is_fixed = true;
        } else if word.eq_ignore_ascii_case(b"EXPANSION") {
            let number = words.next().ok_or("ERR no expansion")?;
            expansion = Some(integer(number).ok_or("ERR bad expansion")?);
        } else {
            return Err(format!("ERR unknown argument '{:.128}'", word.escape_ascii().to_string()));
        }
    }
    if is_fixed && expansion.is_some_and(|expansion| expansion != 0) {
        return Err("ERR Nonscaling filters cannot expand".into());
    }
    let expansion = match expansion {
        _ if is_fixed => None,
        None => call.server.defaults().bloom.expansion(),
        Some(0) => None,
        Some(number) => match u32::try_from(number) {
            Ok(number) if number <= Bloom::EXPANSION_MAX => Some(number),
            _ => return Err(format!("ERR expansion must be in the range [0, {}]", Bloom::EXPANSION_MAX)),
        },
    };
    u64::try_from(capacity)
        .ok()
        .and_then(|capacity| Bloom::new(error_rate, capacity, expansion))
        .ok_or_else(|| format!("ERR capacity must be in the range [1, {}]", Bloom::CAPACITY_MAX))
}

/// Creates a filter unless there is something with its name.
pub fn create(call: &mut Call<'_>, parameters: Parameters) {
    let name = call.arg(1);
    if let Some(Target::Guard(_)) = call.target(name) {
        return call.replies.error(&Refusal::Exists.to_string());
    }
    if call.server.catalog.own().is_none() {
        let names: Vec<_> =
            call.server.catalog.guards().iter().map(|guard| guard.name.escape_ascii().to_string()).collect();
        let text = format!("ERR could not create filter: this server only has '{}'", names.join("', '"));
        return call.replies.error(&text);
    }
    let created = call.server.catalog.create(call.session.database, name, parameters);
    let outcome = match created {
        Ok(Created::New(_)) => Ok(()),
        Ok(Created::Existing(filter)) if filter.kind() == parameters.kind() => Err(Refusal::Exists),
        Ok(Created::Existing(_)) => Err(Refusal::WrongType),
        Err(refusal) => Err(refusal),
    };
    call.done(outcome);
}

/// What a command about the whole filter is about.
pub enum Whole {
    Filter(Arc<Filter>),
    Guard(sidebloom::guard::GuardStats),
}

/// The filter of a command; replies with an error if there is none of this kind.
pub fn whole(call: &mut Call<'_>, kind: Kind, missing: &str) -> Option<Whole> {
    match call.target(call.arg(1)) {
        Some(Target::Guard(named)) => Some(Whole::Guard(named.guard.stats())),
        Some(Target::Filter(filter)) if filter.kind() == kind => Some(Whole::Filter(filter)),
        Some(Target::Filter(_)) => {
            call.replies.error(&Refusal::WrongType.to_string());
            None
        }
        None => {
            call.replies.error(missing);
            None
        }
    }
}

/// `BF.CARD name`
pub fn card(call: &mut Call<'_>) {
    if call.target(call.arg(1)).is_none() && call.server.catalog.own().is_some() {
        return call.replies.int(0);
    }
    match whole(call, Kind::Bloom, "ERR not found") {
        Some(Whole::Filter(filter)) => call.replies.int(filter.items()),
        Some(Whole::Guard(stats)) => call.replies.int(stats.keys),
        None => {}
    }
}

/// `BF.INFO name [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`
///
/// What the parameters say of a filter in RedisBloom. What it takes here, `MEMORY USAGE` tells.
pub fn info(call: &mut Call<'_>) {
    if call.args.len() > 3 {
        return call.wrong_arity("bf.info");
    }
    let fields: [BloomField; 5] = match whole(call, Kind::Bloom, "ERR not found") {
        None => return,
        Some(Whole::Guard(stats)) => guard_info::bloom_fields(&stats),
        Some(Whole::Filter(filter)) => {
            let (Parameters::Bloom(bloom), items) = (filter.parameters(), filter.items()) else { return };
            [
                ("CAPACITY", "Capacity", Some(bloom.capacity(items))),
                ("SIZE", "Size", Some(bloom.redis_bytes(items))),
                ("FILTERS", "Number of filters", Some(bloom.layers(items))),
                ("ITEMS", "Number of items inserted", Some(items)),
                ("EXPANSION", "Expansion rate", bloom.expansion().map(u64::from)),
            ]
        }
    };
    if call.args.len() == 2 {
        call.replies.map(fields.len());
        for (_, title, number) in fields {
            call.replies.simple(title);
            call.replies.int_or_null(number);
        }
        return;
    }
    match fields.into_iter().find(|(word, ..)| call.is(2, word)) {
        Some((_, title, number)) => {
            if call.replies.resp3 {
                call.replies.map(1);
                call.replies.simple(title);
            } else {
                call.replies.array(1);
            }
            call.replies.int_or_null(number);
        }
        None => call.replies.error("ERR Invalid information value"),
    }
}
