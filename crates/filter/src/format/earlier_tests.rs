//! Bytes written by builds of earlier versions are refused by version, not as damage.

use super::*;
use crate::error::Error;
use header::READS;

/// Header pages of a parity filter of three keys, without the zeros in the middle: 112 bytes and the CRC.
const PAGES: [(u32, &str, [u8; 4]); 3] = [
    (
        1,
        "534246494c5445520100000002010100ed5e000000000000030000000000000001000000000000000700000000000000efcdab89 \
     67452301401000000000000008000000010000000000000000000000000000000000000000000000000000000000000000000000 \
     0000000000000000",
        [122, 233, 55, 163],
    ),
    (
        2,
        "534246494c5445520200000002040100ed5e000000000000030000000000000001000000000000000700000000000000efcdab89 \
     6745230140100000000000000800000001000000000000000000000000000000000000000000000000000000ed0b000000000000 \
     0000000000000000",
        [254, 5, 45, 52],
    ),
    (
        3,
        "534246494c5445520300000007040100ed5e000000000000030000000000000001000000000000000700000000000000efcdab \
     896745230140100000000000000800000001000000000000000000000000000000000000000000000000000000ed0b00000000 \
     0000000000000000313f",
        [140, 144, 40, 168],
    ),
];

/// Streams of a growing series of Bloom filters, up to the length of the first block and some of its lines.
const STREAMS: [(u32, &str); 3] = [
    (
        1,
        "5342462d57495245534246494c5445520100000005020000ed5e0000000000000300000000000000010000000000000000000000 \
     000000000000000000000000401000000000000001000000000000007b14ae47e17a843f02000000000000000000000000000000 \
     6ea7449740000000c8548326c8241035a63dc0594c53425a",
    ),
    (
        2,
        "5342462d57495245534246494c5445520200000005020000ed5e0000000000000300000000000000010000000000000000000000 \
     000000000000000000000000401000000000000001000000000000007b14ae47e17a843f02000000000000000000000000000000 \
     00000000000000007da3da6f40000000c8548326c8241035",
    ),
    (
        3,
        "5342462d57495245534246494c5445520300000005020000ed5e00000000000003000000000000000100000000000000000000 \
     00000000000000000000000000401000000000000001000000000000007b14ae47e17a843f0200000000000000000000000000 \
     000000000000000000000000000000000000e38d4d8040000000c8548326c8241035a63dc0594c53425a",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn assert_refused<T>(version: u32, refused: Result<T, Error>) {
    let error = refused.map(drop).unwrap_err();
    let named = matches!(&error, Error::UnsupportedVersion { found, supported } if *found == version && *supported == READS);
    assert!(named, "{error}");
    assert!(error.to_string().ends_with("build the filter again from its keys"), "{error}");
}

#[test]
fn header_pages_of_earlier_versions_are_refused_by_version() {
    for (version, fields, crc) in PAGES {
        let mut page = bytes(fields);
        page.resize(HEADER_BYTES - 4, 0);
        page.extend(crc);
        assert_refused(version, Header::decode(&page));
        page[200] ^= 1;
        assert!(matches!(Header::decode(&page), Err(Error::Damaged { .. })));
    }
}

#[test]
fn streams_of_earlier_versions_are_refused_by_version() {
    for (version, stream) in STREAMS {
        let mut stream = bytes(stream);
        assert_refused(version, receive_filter(&mut &stream[..], 1 << 20));
        stream[30] ^= 1;
        assert!(matches!(receive_filter(&mut &stream[..], 1 << 20), Err(Error::Damaged { .. })));
    }
}
