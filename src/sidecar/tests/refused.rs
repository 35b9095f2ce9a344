//! No writer writes what no reader accepts.

use super::*;

proptest! {
    #[test]
    fn i6_a_header_that_a_reader_refuses_is_not_written(
        keys in extreme(), lines in extreme(), count in extreme(), expected_fpr: f64, kind in 0..KINDS.len(), is_bound: bool,
    ) {
        let header = Header::decode(&Case::new(KINDS[kind]).bytes()).unwrap();
        let prefixes = StoredPrefixes { count, ..header.prefixes };
        let binding = header.binding.filter(|_| is_bound);
        let header = Header { keys, lines, expected_fpr, prefixes, binding, ..header };
        match header.encode() {
            Ok(page) => prop_assert_eq!(Header::decode(&page).unwrap(), header),
            Err(error) => prop_assert!(matches!(error, crate::filter::Error::Unencodable { .. }), "another error"),
        }
    }
}

fn extreme() -> impl Strategy<Value = u64> {
    prop::sample::select(&[0, 1, 2, 100, 1 << 32, u64::MAX - 1, u64::MAX][..])
}

/// Its kind is at 12, its hash at 13, and its first prefix extractor at 120.
#[test]
fn i6_codes_of_a_newer_version_in_a_sidecar_are_refused_by_name() {
    let case = Case::new(BLOOM);
    let whole = case.bytes();
    for (at, code, what) in
        [(12, 8, "filter kind 8"), (13, 5, "hash code 5"), (120, 3, "prefix extractor 0x3")]
    {
        let unusable = case.with(&with_header_byte(whole.clone(), at, code)).used().map(drop).unwrap_err();
        let text = format!(
            "it has {what} at offset {at}, which this version does not know: it was written by a newer version"
        );
        assert!(unusable.to_string().starts_with(&text), "{unusable}");
        assert!(matches!(unusable, Unusable::UnknownCode { .. }) && !unusable.is_passing());
    }
}
