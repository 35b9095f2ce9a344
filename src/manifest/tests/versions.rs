//! Errors name manifests of other versions as such.

use super::*;
use crate::fs::Fs;
use crate::manifest::format::frame;

#[test]
fn a_manifest_of_a_newer_version_is_named() {
    let mut bytes = encode_header(HEADER);
    bytes[8] = 9;
    let crc = crate::codec::crc32(&[&bytes[..40]]);
    bytes[40..].copy_from_slice(&crc.to_le_bytes());
    let error = read_state(&with_bytes(&bytes), Path::new("db")).unwrap_err();
    assert!(matches!(error, Error::UnsupportedVersion { found: 9, .. }));
}

#[test]
fn a_manifest_of_the_version_before_is_named() {
    let mut bytes = [b"SBLMMAN\n".as_slice(), &[1, 0, 0, 0], &[7; 16]].concat();
    bytes.extend(crate::codec::crc32(&[&bytes]).to_le_bytes());
    bytes.extend([0; 20]); // What an edit may begin with.
    let error = read_state(&with_bytes(&bytes), Path::new("db")).unwrap_err();
    assert!(matches!(error, Error::UnsupportedVersion { found: 1, .. }));
    assert!(
        error.to_string().contains("has format version 1, but this build reads versions 5 to 7; an older"),
        "{error}"
    );
}

/// So no edit of this version comes after those of an earlier one.
#[test]
fn i14_a_manifest_that_was_opened_is_replaced_before_the_first_edit() {
    let (fs, dir) = (SimFs::new(), Path::new("db"));
    create_dir_durably(&fs, dir).unwrap();
    let open = || Manifest::open(Arc::new(fs.clone()), dir).unwrap();
    Manifest::create(Arc::new(fs.clone()), dir, &ManifestState::new(HEADER)).unwrap();
    let stamp = || fs.stamp(&dir.join(MANIFEST)).unwrap().unwrap();
    let before = stamp();
    let (mut manifest, mut state) = open();
    assert!(matches!(manifest.append(&edit(1), &mut state), Err(Error::Internal(_))));
    assert_eq!((stamp(), open().1), (before, ManifestState::new(HEADER)), "nothing was written");
    manifest.rewrite(&state).unwrap();
    manifest.append(&edit(1), &mut state).unwrap();
    assert_ne!(stamp().file, before.file, "another file");
    assert_eq!(open().1, state);
}

/// A hash code, and the kind of a field in an edit. Code 2 and field 0 belong to no version.
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
        (with_field(8), field_at, "an edit with field 8"),
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
