//! Manifests of other versions are named as such.

use super::*;
use crate::manifest::format::frame;

#[test]
fn a_manifest_of_a_newer_version_is_named() {
    let mut bytes = encode_header(HEADER);
    bytes[8] = 9;
    let crc = crate::codec::crc32(&[&bytes[..40]]);
    bytes[40..].copy_from_slice(&crc.to_le_bytes());
    let error = read_state(&with_bytes(&bytes), Path::new("db")).unwrap_err();
    assert!(matches!(error, Error::UnsupportedVersion { found: 9, supported: 4, .. }));
}

#[test]
fn a_manifest_of_the_version_before_is_named() {
    let mut bytes = [b"SBLMMAN\n".as_slice(), &[1, 0, 0, 0], &[7; 16]].concat();
    bytes.extend(crate::codec::crc32(&[&bytes]).to_le_bytes());
    bytes.extend([0; 20]); // What an edit may begin with.
    let error = read_state(&with_bytes(&bytes), Path::new("db")).unwrap_err();
    assert!(matches!(error, Error::UnsupportedVersion { found: 1, supported: 4, .. }));
    assert!(error.to_string().ends_with("or rebuild it"), "{error}");
}

/// A hash code, and the kind of a field in an edit. Code 2 and field 0 are those of no version.
#[test]
fn i6_a_hash_or_a_field_of_a_newer_version_is_named_and_is_no_damage() {
    let sealed = |code: u32| {
        let mut bytes = encode_header(HEADER);
        bytes[20..24].copy_from_slice(&code.to_le_bytes());
        let crc = crate::codec::crc32(&[&bytes[..40]]);
        bytes[40..].copy_from_slice(&crc.to_le_bytes());
        [bytes, encode_edit(&Edit::default(), tag(HEADER)).unwrap()].concat()
    };
    let snapshot = encode_edit(&Edit { next_id: Some(FileId(3)), ..Edit::default() }, tag(HEADER)).unwrap();
    let before = [encode_header(HEADER), snapshot].concat();
    let with_field = |kind: u8| [&before[..], &frame(&[5, 9, kind, 1, 0xff], tag(HEADER)).unwrap()].concat();
    assert!(read_state(&with_bytes(&with_field(5)), Path::new("db")).is_ok());
    let field_at = before.len() + 16 + 2;
    let cases = [
        (sealed(5), 20, "hash code 5"),
        (sealed(0x104), 20, "hash code 260"),
        (with_field(7), field_at, "an edit with field 7"),
        (with_field(0xfe), field_at, "an edit with field 254"),
    ];
    for (bytes, at, what) in cases {
        let error = read_state(&with_bytes(&bytes), Path::new("db")).unwrap_err();
        let text = format!(
            "db/MANIFEST has {what} at offset {at}, which this version does not know: it was written by a newer version of sidebloom"
        );
        assert!(error.to_string().starts_with(&text), "{error}");
        assert!(matches!(error, Error::UnknownCode { .. }));
    }
    for bytes in [sealed(2), with_field(0)] {
        assert!(is_corruption(&read_state(&with_bytes(&bytes), Path::new("db"))));
    }
}
