//! Manifests of other versions are named as such.

use super::*;

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
