//! What is written is read, and nothing else.

use super::format::{File, Mark, Record, What};
use super::owner::{Kind, Owner};
use crate::codec::crc32;
use crate::error::Error;
use crate::id::FileId;
use std::path::Path;

fn record(kind: Kind) -> Record {
    let file = |what, bytes, mark| File { what, bytes, sha256: [bytes as u8; 32], mark };
    let mut files = vec![
        file(What::Sidecar(FileId(7)), 300, Mark::Head([9; 32])),
        file(What::Segment(FileId(7)), 4000, Mark::Digest(0x1122_3344_5566_7788)),
        file(What::Log(FileId(9)), 500, Mark::None),
        file(What::Manifest, 200, Mark::None),
    ];
    if kind == Kind::Guard {
        files.push(file(What::Settings, 52, Mark::None));
    }
    let mut record = Record::new(Owner { kind, id: 0xaabb }, 3, 1_700_000_000_000, files);
    record.head.generation = u64::from(kind == Kind::Guard);
    (record.head.entries, record.head.new_bytes) = (12, 700);
    record
}

fn decode(bytes: &[u8]) -> Result<Record, Error> {
    Record::decode(Path::new("backup"), bytes)
}

/// The bytes with another one, and checksums that match.
fn with(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    let body = crc32(&[&bytes[96..]]);
    bytes[88..92].copy_from_slice(&body.to_le_bytes());
    let head = crc32(&[&bytes[..92]]);
    bytes[92..96].copy_from_slice(&head.to_le_bytes());
    bytes
}

#[test]
fn backups_and_owners_round_trip() {
    for kind in [Kind::Store, Kind::Guard] {
        let record = record(kind);
        let decoded = decode(&record.encode().unwrap()).unwrap();
        assert_eq!(decoded.files, record.files);
        assert_eq!((decoded.head.bytes, decoded.head.entries), (record.head.bytes, 12));
        let owner = Owner { kind, id: u64::MAX };
        assert_eq!(Owner::decode(Path::new("r"), &owner.encode()).unwrap(), owner);
    }
}

type Decode = dyn Fn(&[u8]) -> Result<(), Error>;

#[test]
fn i6_every_flipped_bit_and_every_other_length_is_refused() {
    let owner = Owner { kind: Kind::Store, id: 5 }.encode();
    let as_owner = |bytes: &[u8]| Owner::decode(Path::new("r"), bytes).map(drop);
    let as_record = |bytes: &[u8]| decode(bytes).map(drop);
    let decoders: [(Vec<u8>, &Decode); 2] =
        [(owner, &as_owner), (record(Kind::Guard).encode().unwrap(), &as_record)];
    for (whole, decode) in decoders {
        decode(&whole).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(decode(&damaged), Err(Error::Corruption { .. })), "bit {bit}");
        }
        for len in 0..whole.len() {
            assert!(matches!(decode(&whole[..len]), Err(Error::Corruption { .. })), "{len} bytes");
        }
        assert!(decode(&[&whole[..], b"x"].concat()).is_err());
    }
}

#[test]
fn i14_codes_and_versions_of_a_newer_version_are_named() {
    let whole = record(Kind::Store).encode().unwrap();
    let version = decode(&with(&whole, 8, 2)).unwrap_err();
    assert!(matches!(version, Error::UnsupportedVersion { found: 2, .. }), "{version}");
    for (at, code, what) in [(12, 3, "kind 3"), (96, 6, "a file of kind 6")] {
        let error = decode(&with(&whole, at, code)).unwrap_err();
        assert!(matches!(&error, Error::UnknownCode { what: found, .. } if found == what), "{error}");
    }
    for (at, byte) in [(12, 0), (13, 1), (16, 0), (40, 1), (56, 0), (72, 0), (96, 0), (96, 4)] {
        let error = decode(&with(&whole, at, byte)).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "byte {at} is {byte}: {error}");
    }
}

#[test]
fn i6_a_backup_that_no_reader_takes_is_not_written() {
    let sample = record(Kind::Store);
    let without = |what| {
        let files = sample.files.iter().filter(|file| file.what != what).copied().collect();
        Record::new(sample.head.owner, 3, 0, files)
    };
    let twice = Record { files: [&sample.files[..], &sample.files[..]].concat(), ..sample.clone() };
    let mut no_number = sample.clone();
    no_number.head.number = 0;
    let mut more_new = sample.clone();
    more_new.head.new_bytes = u64::MAX;
    let mut sum = sample.clone();
    sum.head.bytes += 1;
    let mut large = record(Kind::Guard);
    large.files[0].bytes = 5000;
    let wrong =
        [without(What::Manifest), without(What::Segment(FileId(7))), twice, no_number, more_new, sum, large];
    for record in wrong {
        assert!(matches!(record.encode(), Err(Error::Unencodable { .. })), "{record:?}");
    }
}
