//! The commands that are about the filter as a whole.

use super::command::Call;
use sidebloom::guard::GuardStats;

/// `BF.RESERVE name error_rate capacity …`, `CF.RESERVE name capacity …`: the one filter is there.
pub fn reserve(call: &mut Call<'_>) {
    call.replies.error("ERR item exists");
}

/// `BF.CARD name`
pub fn card(call: &mut Call<'_>) {
    call.replies.int(call.server.guard.stats().keys);
}

fn bytes(stats: &GuardStats) -> u64 {
    stats.filter_bytes + stats.memtable_bytes
}

/// `BF.INFO name [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`
///
/// The guard grows with its keys, so the capacity is what it holds, and there is no expansion rate, as for a filter of Redis that does
/// not scale.
pub fn bloom_info(call: &mut Call<'_>) {
    let stats = call.server.guard.stats();
    let fields = [
        ("CAPACITY", "Capacity", Some(stats.keys)),
        ("SIZE", "Size", Some(bytes(&stats))),
        ("FILTERS", "Number of filters", Some(stats.filters)),
        ("ITEMS", "Number of items inserted", Some(stats.keys)),
        ("EXPANSION", "Expansion rate", None),
    ];
    let value = |call: &mut Call<'_>, value: Option<u64>| match value {
        Some(number) => call.replies.int(number),
        None => call.replies.null(),
    };
    match call.args.len() {
        2 => {
            call.replies.map(fields.len());
            for (_, title, number) in fields {
                call.replies.simple(title);
                value(call, number);
            }
        }
        3 => match fields.into_iter().find(|(word, ..)| call.is(2, word)) {
            Some((_, _, number)) => {
                call.replies.array(1);
                value(call, number);
            }
            None => call.replies.error("ERR Invalid information value"),
        },
        _ => call.wrong_arity("bf.info"),
    }
}

/// `CF.INFO name`: what a guard has of it. It has no buckets.
pub fn cuckoo_info(call: &mut Call<'_>) {
    let stats = call.server.guard.stats();
    call.replies.map(3);
    for (title, number) in [
        ("Size", bytes(&stats)),
        ("Number of filters", stats.filters),
        ("Number of items inserted", stats.rows),
    ] {
        call.replies.simple(title);
        call.replies.int(number);
    }
}
