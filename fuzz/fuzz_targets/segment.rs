//! The bytes of a segment file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom_fuzz::{repair, segment};

fuzz_target!(|bytes: &[u8]| {
    if let Some(segment) = segment::open(bytes) {
        segment::interrogate(&segment);
    }
    let mut repaired = bytes.to_vec();
    if repair::segment(&mut repaired, None).is_some()
        && let Some(segment) = segment::open(&repaired)
    {
        segment::interrogate(&segment);
    }
});
