//! What no reader takes, no writer writes.

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
