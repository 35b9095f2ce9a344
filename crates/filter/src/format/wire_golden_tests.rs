//! The committed wire form of small filters, and of kinds 3 to 5. These also freeze the parameters of those
//! kinds in the header page. (Files of kinds 6 and 7 are frozen in `golden_tests.rs`.)

use super::*;
use crate::KeyHasher;
use crate::golden;
use crate::{
    AnyFilter, Bloom, CountingBloom, HashFunction, Plan, ScalableBloom, Series, SmallFilter, Verdict,
};

const KEYS: [&str; 3] = ["blue", "green", "red"];

/// Checks a filter of [`KEYS`] whose lines make one coded block.
fn assert_golden(name: &str, mut filter: AnyFilter, parameters: [&'static str; 2]) {
    KEYS.iter().for_each(|key| assert!(filter.insert(key).is_ok()));
    let mut wire = Vec::new();
    send_filter(&filter, &mut wire).unwrap();
    let fields = [
        (8, "magic"),
        (8, "header: magic of a sidecar"),
        (4, "header: version"),
        (1, "header: kind: 3 Bloom, 4 counting, 5 scalable"),
        (1, "header: hash: 2 xxh3-128, 3 MurmurHash3, 4 siphash-1-3"),
        (1, "header: bound"),
        (1, "header: zero"),
        (8, "header: seed, or first half of the key"),
        (8, "header: keys"),
        (8, "header: lines"),
        (8, "header: segment id"),
        (8, "header: segment digest"),
        (8, "header: checksums offset"),
        (4, parameters[0]),
        (4, "header: zero"),
        (8, "header: highest false-positive rate"),
        (8, parameters[1]),
        (8, "header: zero"),
        (8, "header: second half of the key, or zero"),
        (8, "header: expected false-positive rate"),
        (4, "checksum of all before"),
        (4, "bytes of the block"),
        (wire.len() - 136, "block: lines as they are, or symbols and frequencies, state, stream"),
        (8, "digest of the lines"),
    ];
    golden::check(name, &wire, &fields);
    let read = receive_filter(&mut &wire[..], 1 << 20).unwrap();
    assert!(KEYS.iter().all(|key| read.contains(key) == Verdict::Maybe));
    assert_eq!((read.contains("yellow"), read.keys()), (Verdict::Absent, 3));
}

#[test]
fn golden_wire_of_a_bloom_filter() {
    let plan = Plan { hash: HashFunction::Murmur3(0x5eed), ..Plan::new(100, 0.01).unwrap() };
    assert_golden(
        "wire-bloom",
        AnyFilter::Bloom(Bloom::with_plan(plan).unwrap()),
        ["header: k", "header: zero"],
    );
}

#[test]
fn golden_wire_of_a_counting_filter() {
    let plan = Plan { hash: HashFunction::SipHash13([0x5eed, 0xbed]), ..Plan::new(100, 0.01).unwrap() };
    let filter = AnyFilter::Counting(CountingBloom::with_plan(plan).unwrap());
    assert_golden("wire-counting", filter, ["header: k", "header: zero"]);
}

#[test]
fn golden_wire_of_a_scalable_filter() {
    let series = Series { first_keys: 2, fpr: 0.01, hash: HashFunction::Xxh3(0x5eed) };
    let filter = AnyFilter::Scalable(ScalableBloom::with_series(series).unwrap());
    assert_golden(
        "wire-scalable",
        filter,
        ["header: filters of the series", "header: keys of the first filter"],
    );
}

#[test]
fn golden_wire_of_a_small_filter() {
    let filter = SmallFilter::build(8, KEYS, KeyHasher::siphash13([0x5eed, 0xbed])).unwrap();
    let mut wire = Vec::new();
    send_filter(&AnyFilter::Small(filter), &mut wire).unwrap();
    let fields = [
        (4, "magic"),
        (1, "version"),
        (1, "hash: 1 xxh3-64, 4 siphash-1-3"),
        (8, "seed, or first half of the key"),
        (8, "second half of the key, for hash 4 only"),
        (1, "keys"),
        (1, "rate bits"),
        (1, "bytes of the coded values"),
        (wire.len() - 29, "coded values: for each gap, its high part in unary and its 7 low bits"),
        (4, "checksum of all before"),
    ];
    golden::check("wire-small", &wire, &fields);
    let read = receive_filter(&mut &wire[..], 1 << 20).unwrap();
    assert!(KEYS.iter().all(|key| read.contains(key) == Verdict::Maybe));
    assert_eq!((read.contains("yellow"), read.keys()), (Verdict::Absent, 3));
}
