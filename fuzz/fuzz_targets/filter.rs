//! Filters of unnatural hashes: many in one line, many nearly equal. None is ever denied (I1).
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use sidebloom::filter::{AnyFilter, SmallFilter};
use sidebloom::internal::fuzz::{BuiltFilter, FilterSpec, Isa, Prober, Verdict, Width};
use sidebloom::{receive_filter, send_filter};

/// Enough for several lines of every kind.
const HASHES: usize = 1000;

#[derive(Debug, Arbitrary)]
struct Input {
    kind: u8,
    bits_per_key: u8,
    /// Each hash is followed by this many close ones.
    hashes: Vec<(u64, u8, u8)>,
}

fuzz_target!(|input: Input| {
    let close = |&(hash, count, shift): &(u64, u8, u8)| {
        (0..=u64::from(count)).map(move |i| hash.wrapping_add(i << (shift % 64)))
    };
    let hashes: Vec<u64> = input.hashes.iter().flat_map(close).take(HASHES).collect();
    let spec = match usize::from(input.kind) % (Width::ALL.len() + 2) {
        0 => return small(1 + u32::from(input.bits_per_key % 32), &hashes),
        1 => FilterSpec::BlockedBloom { bits_per_key: 2.0 + f64::from(input.bits_per_key % 62) },
        width => FilterSpec::Parity { width: Width::ALL[width - 2] },
    };
    let filter = BuiltFilter::build(spec, &hashes).unwrap();
    for isa in Isa::available() {
        let prober = Prober::with_isa(filter.kind, isa);
        let denied = hashes.iter().find(|&&hash| prober.probe(&filter.lines, hash) == Verdict::Absent);
        assert_eq!(denied, None, "denied on {}", isa.name());
    }
});

/// A small filter comes back from the wire unchanged, and denies none either.
fn small(rate_bits: u32, hashes: &[u64]) {
    let filter = SmallFilter::from_hashes(rate_bits, hashes.iter().copied(), 0).unwrap();
    let mut wire = Vec::new();
    send_filter(&AnyFilter::Small(filter.clone()), &mut wire).unwrap();
    match receive_filter(&mut &wire[..], 1 << 20) {
        Ok(AnyFilter::Small(received)) => assert_eq!(received, filter),
        other => panic!("{other:?}"),
    }
    let denied = hashes.iter().find(|&&hash| filter.contains_hash(hash) == Verdict::Absent);
    assert_eq!(denied, None, "denied by a small filter");
}
