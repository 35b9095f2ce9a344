//! The bytes of a manifest. A state that was read can be written, and reads back unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom::internal::fuzz::{MANIFEST, Manifest, read_state};
use sidebloom_fuzz::disk::SimFs;
use sidebloom_fuzz::{named, repair};
use std::path::Path;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    ask(bytes);
    let mut repaired = bytes.to_vec();
    if repair::manifest(&mut repaired).is_some() {
        ask(&repaired);
    }
});

fn ask(file: &[u8]) {
    let (fs, dir) = (SimFs::new(), Path::new(""));
    fs.write(MANIFEST, file);
    let Some(state) = named(read_state(&fs, dir)) else { return };
    Manifest::create(Arc::new(fs.clone()), dir, &state).unwrap();
    assert_eq!(read_state(&fs, dir).unwrap(), state);
}
