//! The memory of building a parity filter, counted by the allocator.

use crate::allocator::{exclusive, live_bytes, peak_bytes};
use sidebloom::filter::{BuiltFilter, FilterSpec, Width};

/// Bytes per key: the caller's hashes, everything that the build allocates, and the filter itself.
#[test]
fn a_build_holds_at_most_24_bytes_a_key_with_its_input_and_its_result() {
    let _exclusive = exclusive();
    let keys = 2_000_000;
    let spread = |i: u64| {
        (i ^ i >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    for width in Width::ALL {
        let before = live_bytes();
        let hashes: Vec<u64> = (0..keys).map(spread).collect();
        let (peak, filter) =
            peak_bytes(|| BuiltFilter::build(FilterSpec::Parity { width }, &hashes).unwrap());
        let peak = (peak - before) as f64 / keys as f64;
        println!("{width:?}: {peak:.2} bytes a key, of which the input takes 8");
        assert!(peak <= 24.0, "{width:?}: {peak} bytes a key");
        // At least the input, a copy for sorting, and the filter; otherwise the counter does not work.
        assert!(peak > 16.0 + width.bits_per_key() / 8.0, "{width:?}: {peak} bytes a key");
        drop(filter);
    }
}
