//! Commands about the filter as a whole.

use super::command::Call;
use sidebloom::guard::GuardStats;

/// `BF.RESERVE name error_rate capacity …`, `CF.RESERVE name capacity …`: the one filter already exists.
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

/// The filters of the segments and of the latest changes.
fn filters(stats: &GuardStats) -> u64 {
    stats.filters + 1
}

/// `BF.INFO name [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`
///
/// The guard grows with its keys, so its capacity is their number, and its expansion rate is null, as for a
/// Redis filter that does not scale.
pub fn bloom_info(call: &mut Call<'_>) {
    let stats = call.server.guard.stats();
    let fields = [
        ("CAPACITY", "Capacity", Some(stats.keys)),
        ("SIZE", "Size", Some(bytes(&stats))),
        ("FILTERS", "Number of filters", Some(filters(&stats))),
        ("ITEMS", "Number of items inserted", Some(stats.keys)),
        ("EXPANSION", "Expansion rate", None),
    ];
    match call.args.len() {
        2 => {
            call.replies.map(fields.len());
            for (_, title, number) in fields {
                call.replies.simple(title);
                number_or_null(call, number);
            }
        }
        3 => match fields.into_iter().find(|(word, ..)| call.is(2, word)) {
            Some((_, _, number)) => {
                call.replies.array(1);
                number_or_null(call, number);
            }
            None => call.replies.error("ERR Invalid information value"),
        },
        _ => call.wrong_arity("bf.info"),
    }
}

/// `CF.INFO name`: client libraries expect every field, so those without a meaning for a guard are null.
pub fn cuckoo_info(call: &mut Call<'_>) {
    let stats = call.server.guard.stats();
    let fields = [
        ("Size", Some(bytes(&stats))),
        ("Number of buckets", None),
        ("Number of filters", Some(filters(&stats))),
        ("Number of items inserted", Some(stats.rows)),
        ("Number of items deleted", None),
        ("Bucket size", None),
        ("Expansion rate", None),
        ("Max iterations", None),
    ];
    call.replies.map(fields.len());
    for (title, number) in fields {
        call.replies.simple(title);
        number_or_null(call, number);
    }
}

fn number_or_null(call: &mut Call<'_>, number: Option<u64>) {
    match number {
        Some(number) => call.replies.int(number),
        None => call.replies.null(),
    }
}
