//! Commands about one cuckoo filter as a whole.

use super::super::command::Call;
use super::bloom::{Whole, create, whole};
use super::guard_info::{self, CuckooField};
use super::numbers::integer;
use crate::filters::{Cuckoo, Kind, Parameters};

/// `CF.RESERVE name capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`
pub fn reserve(call: &mut Call<'_>) {
    match parameters(call) {
        Ok(parameters) => create(call, Parameters::Cuckoo(parameters)),
        Err(error) => call.replies.error(&error),
    }
}

fn parameters(call: &Call<'_>) -> Result<Cuckoo, String> {
    let defaults = call.server.defaults().cuckoo;
    let capacity = integer(call.arg(2)).ok_or("ERR Bad capacity")?;
    let (mut bucket_size, mut iterations, mut expansion) =
        (defaults.bucket_size(), defaults.max_iterations(), defaults.expansion());
    for option in call.args.get(3..).unwrap_or_default().chunks(2) {
        let [word, value] = option else {
            return Err("ERR wrong number of arguments for 'cf.reserve' command".into());
        };
        let word = word.to_ascii_uppercase();
        let number = |least: i64, most: i64| {
            let word = String::from_utf8_lossy(&word);
            let number = integer(value).ok_or_else(|| format!("ERR Couldn't parse {word}"))?;
            let is_in = (least..=most).contains(&number);
            is_in
                .then_some(number)
                .ok_or_else(|| format!("ERR {word}: value must be in the range [{least}, {most}]"))
        };
        match word.as_slice() {
            b"BUCKETSIZE" => bucket_size = number(1, u8::MAX.into())? as u8,
            b"MAXITERATIONS" => iterations = number(1, u16::MAX.into())? as u16,
            b"EXPANSION" => expansion = number(0, Cuckoo::EXPANSION_MAX.into())? as u16,
            _ => return Err(format!("ERR unknown argument '{:.128}'", word.escape_ascii().to_string())),
        }
    }
    u64::try_from(capacity)
        .ok()
        .and_then(|capacity| Cuckoo::new(capacity, bucket_size, iterations, expansion).ok())
        .ok_or_else(|| {
            format!("ERR Capacity must be in the range [2 * BUCKETSIZE, {}]", Cuckoo::CAPACITY_MAX)
        })
}

/// `CF.INFO name`
///
/// What the parameters say of a filter in RedisBloom. What it takes here, `MEMORY USAGE` tells.
pub fn info(call: &mut Call<'_>) {
    let fields: [CuckooField; 8] = match whole(call, Kind::Cuckoo, "ERR not found") {
        None => return,
        Some(Whole::Guard(stats)) => guard_info::cuckoo_fields(&stats),
        Some(Whole::Filter(filter)) => {
            let (Parameters::Cuckoo(cuckoo), items) = (filter.parameters(), filter.items()) else { return };
            [
                ("Size", Some(cuckoo.redis_bytes(items))),
                ("Number of buckets", Some(cuckoo.buckets())),
                ("Number of filters", Some(cuckoo.filters(items))),
                ("Number of items inserted", Some(items)),
                ("Number of items deleted", Some(filter.deletions())),
                ("Bucket size", Some(cuckoo.bucket_size().into())),
                ("Expansion rate", Some(cuckoo.expansion().into())),
                ("Max iterations", Some(cuckoo.max_iterations().into())),
            ]
        }
    };
    call.replies.map(fields.len());
    for (title, number) in fields {
        call.replies.simple(title);
        call.replies.int_or_null(number);
    }
}

/// `CF.COMPACT name`: there is nothing to move, but the deletions are counted anew.
pub fn compact(call: &mut Call<'_>) {
    match whole(call, Kind::Cuckoo, "ERR Cuckoo filter was not found") {
        Some(Whole::Filter(filter)) => {
            let Some(own) = call.server.catalog.own() else { return };
            let compacted = own.filters.compact(&filter);
            call.done(compacted);
        }
        Some(Whole::Guard(_)) => call.replies.simple("OK"),
        None => {}
    }
}
