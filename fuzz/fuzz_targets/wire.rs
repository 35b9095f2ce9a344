//! A filter received over a network. Sending it again gives the same bytes, which can be received again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom::filter::Error;
use sidebloom::internal::fuzz::crc32;
use sidebloom::{receive_filter, send_filter};
use sidebloom_fuzz::{assert_named, repair};

const MAX_BYTES: u64 = 8 << 20;

fuzz_target!(|bytes: &[u8]| {
    ask(bytes);
    if let Some(start) = bytes.get(..120) {
        // Reaches the entropy-coded blocks.
        let crc = crc32(&[start]);
        ask(&[start, &crc.to_le_bytes(), bytes.get(124..).unwrap_or_default()].concat());
    }
    if let Some((small, _)) = bytes.split_last_chunk::<4>() {
        // Reaches the coded values of a small filter.
        ask(&[small, &crc32(&[small]).to_le_bytes()].concat());
    }
    if let Some(repaired) = repair::wire(bytes) {
        ask(&repaired);
    }
});

fn ask(mut stream: &[u8]) {
    let filter = match receive_filter(&mut stream, MAX_BYTES) {
        Ok(filter) => filter,
        Err(Error::TooLarge { .. }) => return,
        Err(error) => return assert_named(&error.into()),
    };
    for key in [&b""[..], b"a", b"song", &[0xff; 40]] {
        filter.contains(key);
    }
    let (mut sent, mut again) = (Vec::new(), Vec::new());
    let bytes = send_filter(&filter, &mut sent).unwrap();
    assert_eq!(bytes, sent.len() as u64);
    send_filter(&receive_filter(&mut &sent[..], MAX_BYTES).unwrap(), &mut again).unwrap();
    assert!(sent == again, "a filter changes on its way");
}
