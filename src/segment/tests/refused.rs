//! No writer writes what no reader accepts.

use super::*;
use crate::key::MAX_SEQ;
use format::{BlockHandle, Footer, Location, WRITES};
use proptest::prelude::*;
use proptest::sample::select;

/// Numbers at the limits.
fn extreme() -> impl Strategy<Value = u64> {
    select(&[0, 1, 2, 1 << 40, MAX_SEQ - 1, MAX_SEQ, MAX_SEQ + 1, u64::MAX - 1, u64::MAX][..])
}

proptest! {
    #[test]
    fn i6_properties_that_a_reader_refuses_are_not_written(
        numbers in prop::collection::vec(extreme(), Facts::NUMBERS),
        keys: [bool; 2],
    ) {
        let [smallest, largest] = keys.map(|long| vec![0xff; if long { 3 } else { 0 }]);
        let facts = Facts::new(smallest, largest.into(), numbers.try_into().unwrap());
        let properties = Properties { store: STORE, compression: Compression::None, symbols: None, facts, keyspace: None };
        let mut bytes = Vec::new();
        match properties.encode(&mut bytes) {
            Ok(()) => {
                let location = Location { path: Path::new("s"), id: ID, offset: 9 };
                prop_assert_eq!(Properties::decode(location, &bytes).unwrap(), properties);
            }
            Err(error) => {
                prop_assert!(matches!(error, Error::NumbersExhausted { .. } | Error::Unencodable { .. }), "another error");
                prop_assert!(bytes.is_empty());
            }
        }
    }

    #[test]
    fn i6_names_of_keyspaces_that_a_reader_refuses_are_not_written(
        number in select(&[0, 1, 300, u32::MAX][..]), len in select(&[0usize, 1, 255, 256][..]),
    ) {
        let facts = Facts { entries: 1, max_seq: 1, min_seq: 1, largest: vec![1].into(), ..Facts::default() };
        let keyspace = Some(KeyspaceName { number, name: "n".repeat(len) });
        let properties =
            Properties { store: STORE, compression: Compression::None, symbols: None, facts, keyspace };
        let (mut bytes, location) = (Vec::new(), Location { path: Path::new("s"), id: ID, offset: 9 });
        let is_written = properties.encode(&mut bytes).is_ok();
        prop_assert_eq!(is_written, number > 0 && (1..256).contains(&len));
        if is_written {
            prop_assert_eq!(Properties::decode(location, &bytes).unwrap(), properties);
            bytes.extend([1, 1, 1, b'n']);
            prop_assert!(Properties::decode(location, &bytes).is_err(), "the field comes twice");
        }
    }

    #[test]
    fn i6_a_footer_that_a_reader_refuses_is_not_written(
        number in extreme(), at in extreme(), adjacent: bool, lens: [u32; 2], digest: u64,
    ) {
        let top = BlockHandle { offset: at, len: lens[0] };
        let behind = top.end().wrapping_add(u64::from(!adjacent));
        let properties = BlockHandle { offset: behind, len: lens[1] };
        let footer = Footer { id: ID, version: WRITES, number, top, properties, digest };
        let Ok(bytes) = footer.encode() else { return Ok(()) };
        let location = Location { path: Path::new("segment"), id: ID, offset: properties.end() };
        prop_assert_eq!(Footer::decode(location, bytes[..].try_into().unwrap()).unwrap(), footer);
    }
}

#[test]
fn i6_rows_whose_number_no_operation_may_have_are_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let create = |name: &str| {
        SegmentWriter::create(&RealFs, &dir.path().join(name), ID, STORE, WriterOptions::default()).unwrap()
    };
    let mut writer = create("a");
    writer.append(b"a", MAX_SEQ, EntryKind::PUT, b"1").unwrap();
    let refused = writer.append(b"b", MAX_SEQ + 1, EntryKind::PUT, b"2");
    assert!(matches!(refused, Err(Error::NumbersExhausted { .. })));
    writer.finish().unwrap();
    let mut writer = create("b");
    writer.append(b"a", 1, EntryKind::PUT, b"1").unwrap();
    writer.set_ranges(ranges(&[("a", "b", MAX_SEQ + 1)]));
    assert!(matches!(writer.finish(), Err(Error::NumbersExhausted { .. })));
}
