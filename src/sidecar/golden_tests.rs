//! The committed sidecars: every build must write and read `fixtures/golden/*.bin`; `*.hex` are their
//! annotated dumps. `UPDATE_GOLDEN=1 cargo test golden` rewrites both. A change of either changes the format.

use super::tests::maps;
use super::*;
use crate::filter::format::HEADER_BYTES;
use crate::filter::{FilterSpec, LINE_BYTES, PrefixExtractor, PrefixSet, Verdict, Width};
use crate::fs::RealFs;
use crate::hash::KeyHasher;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const HASHER: KeyHasher = KeyHasher::siphash13([0x5eed, 0xbed]);
const BINDING: Binding = Binding { segment: 7, digest: 0x0123_4567_89ab_cdef };

/// Three keys, and their first two bytes.
fn members() -> Members {
    let set = PrefixSet::new([PrefixExtractor::fixed(2), PrefixExtractor::delimited(b'/', 1)]).unwrap();
    let mut members = Members::new(set, HASHER);
    for key in ["blue", "green", "red"] {
        members.add(key.as_bytes(), HASHER.hash(key.as_bytes()));
    }
    members
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden").join(name)
}

/// The field list of the format (`crates/filter/src/format/header.rs`), as widths and names.
const FIELDS: [(usize, &str); 20] = [
    (8, "magic"),
    (4, "version"),
    (1, "kind: 6 blocked Bloom, 7 parity"),
    (1, "hash: siphash-1-3"),
    (1, "bound"),
    (1, "zero"),
    (8, "key, first half"),
    (8, "keys"),
    (8, "lines"),
    (8, "segment id"),
    (8, "segment digest"),
    (8, "checksums offset"),
    (4, "parameters: k, or width"),
    (28, "parameters: lines of each level"),
    (8, "key, second half"),
    (8, "expected false-positive rate"),
    (8, "prefixes among the keys"),
    (16, "extractors: fixed:2, delimited:/:1"),
    (48, "room for more extractors"),
    (HEADER_BYTES - 4 - 184, "zero"),
];

fn annotated(bytes: &[u8]) -> String {
    // Fewer than 64 lines: one checksum.
    let lines = (bytes.len() - HEADER_BYTES) / LINE_BYTES;
    let tail = std::iter::once((4, "header checksum"))
        .chain(std::iter::repeat_n((LINE_BYTES, "line"), lines))
        .chain([(8, "checksum of the lines")]);
    let mut at = 0;
    let mut text = String::new();
    for (width, name) in FIELDS.into_iter().chain(tail) {
        let field = &bytes[at..at + width];
        let shown = if width > 16 && field.iter().all(|&b| b == 0) {
            format!("00 × {width}")
        } else {
            field.chunks(16).map(hex).collect::<Vec<_>>().join("\n      ")
        };
        writeln!(text, "{at:04x}  {shown}  {name}").unwrap();
        at += width;
    }
    assert_eq!(at, bytes.len());
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

fn assert_golden(name: &str, spec: FilterSpec) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    let members = members();
    let (hashes, prefixes) = (members.hashes(), members.prefixes());
    assert_eq!((hashes.len(), prefixes.count), (6, 3));
    create(&RealFs, &path, hashes, spec, HASHER, Some(BINDING), prefixes).unwrap();
    let written = fs::read(&path).unwrap();
    let (bin, hex) = (fixture(&format!("{name}.bin")), fixture(&format!("{name}.hex")));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(fixture("")).unwrap();
        fs::write(&bin, &written).unwrap();
        fs::write(&hex, annotated(&written)).unwrap();
    }
    assert_eq!(annotated(&written), fs::read_to_string(hex).unwrap());
    assert!(written == fs::read(&bin).unwrap());

    let expect = Expect { binding: BINDING, hasher: HASHER };
    let sidecar = Sidecar::open(&maps(), &bin, &expect, Residency::Mapped).unwrap();
    sidecar.verify().unwrap();
    assert!(hashes.iter().all(|&hash| sidecar.probe(hash) == Verdict::Maybe));
    assert_eq!(sidecar.probe(HASHER.hash(b"yellow")), Verdict::Absent);
    assert_eq!(sidecar.probe(HASHER.hash(b"bl")), Verdict::Absent, "it is the prefix of a key, and no key");
}

#[test]
fn golden_bloom_sidecar_is_written_byte_for_byte_and_still_read() {
    assert_golden("filter", FilterSpec::BlockedBloom { bits_per_key: 10.0 });
}

#[test]
fn golden_parity_sidecar_is_written_byte_for_byte_and_still_read() {
    assert_golden("filter-parity", FilterSpec::Parity { width: Width::Eight });
}
