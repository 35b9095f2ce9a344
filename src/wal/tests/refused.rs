//! No writer writes what no reader accepts.

use super::*;
use crate::key::MAX_SEQ;
use proptest::sample::select;

/// Numbers at the limits, and any other.
fn extreme() -> impl Strategy<Value = u64> {
    let limits = select(&[0, 1, MAX_SEQ - 1, MAX_SEQ, MAX_SEQ + 1, MAX_SEQ + 2, u64::MAX - 1, u64::MAX][..]);
    prop_oneof![limits, any::<u64>()]
}

proptest! {
    #[test]
    fn i6_what_a_reader_of_logs_refuses_is_not_written(
        first_seq in extreme(), count in prop_oneof![Just(0), Just(1), Just(u32::MAX), any::<u32>()], synced: u64, payload: Vec<u8>,
    ) {
        let header = LogHeader { id: FileId(7), store_id: 9, first_seq };
        match header.encode() {
            Ok(bytes) => prop_assert_eq!(LogHeader::decode(&bytes, Path::new("log")).unwrap(), Some(header)),
            Err(error) => {
                prop_assert!(matches!(error, Error::NumbersExhausted { .. }), "another error");
                prop_assert!(first_seq > MAX_SEQ + 1);
            }
        }
        let mut bytes = Vec::new();
        match encode_record(&mut bytes, 0x0101_0101, first_seq, count, synced, &payload) {
            Ok(()) => {
                let head = RecordHead::decode(&bytes).unwrap();
                prop_assert_eq!(head.record_len(), bytes.len() as u64);
                prop_assert_eq!((head.first_seq, head.count, head.synced), (first_seq, count, synced));
                prop_assert_eq!(head.next_seq(), Some(first_seq + u64::from(count)));
            }
            Err(error) => {
                prop_assert!(matches!(error, Error::NumbersExhausted { .. }), "another error");
                prop_assert!(bytes.is_empty());
                prop_assert!(first_seq.checked_add(count.into()).is_none_or(|next| next > MAX_SEQ + 1));
            }
        }
    }
}
