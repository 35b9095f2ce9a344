//! No writer writes what no reader accepts.

use super::*;
use crate::key::MAX_SEQ;
use crate::manifest::format::{encode_payload, frame};
use proptest::sample::select;

/// A segment on an invalid level would be in no live set, and its keys would be missing without an error. If
/// no file had reached the log floor, the next log would be below it.
#[test]
fn i6_impossible_levels_numbers_and_floors_are_refused() {
    let with = |edit: Edit| {
        let bytes = [encode_header(HEADER), frame(&encode_payload(&edit), tag(HEADER)).unwrap()].concat();
        read_state(&with_bytes(&bytes), Path::new("db"))
    };
    let added = |meta| Edit { added: vec![meta], ..Edit::default() };
    assert!(with(added(segment_of(u64::MAX >> 1, 6))).is_ok());
    assert!(is_corruption(&with(added(SegmentMeta { place: Place::Level(8), ..segment(1) }))));
    assert!(is_corruption(&with(added(segment_of(1 << 63, 1)))));
    assert!(is_corruption(&with(Edit { last_seq: Some(u64::MAX), ..Edit::default() })));
    let floor = |log_floor, next_id| Edit {
        log_floor: Some(FileId(log_floor)),
        next_id: Some(FileId(next_id)),
        ..Edit::default()
    };
    assert!(with(floor(7, 7)).is_ok());
    assert!(is_corruption(&with(floor(8, 7))));
}

/// Numbers at the limits, where a writer must not go beyond a reader.
fn extreme() -> impl Strategy<Value = u64> + Clone {
    select(&[0, 1, 2, 1 << 62, MAX_SEQ - 1, MAX_SEQ, MAX_SEQ + 1, MAX_SEQ + 2, u64::MAX - 1, u64::MAX][..])
}

fn extreme_segment() -> impl Strategy<Value = SegmentMeta> {
    let facts = prop::collection::vec(extreme(), Facts::NUMBERS);
    let numbers = prop::collection::vec(extreme(), 4);
    (numbers, facts, any::<[bool; 3]>(), any::<u8>()).prop_map(
        |(n, mut facts, [expires, keys @ ..], level)| {
            if !expires {
                facts[7..].fill(0);
            }
            let [smallest, largest] = keys.map(|long| vec![0xff; if long { 3 } else { 0 }]);
            let summary = SegmentSummary {
                id: FileId(n[0]),
                version: n[1] as u32,
                digest: n[1],
                file_bytes: n[2],
                data_bytes: n[3],
                facts: Facts::new(smallest, largest.into(), facts.try_into().unwrap()),
            };
            SegmentMeta { place: place_of(if level < 128 { level % 8 } else { level }), summary }
        },
    )
}

proptest! {
    #[test]
    fn i6_what_a_reader_of_manifests_refuses_is_not_written(
        added in prop::collection::vec(extreme_segment(), 0..2),
        numbers in prop::collection::vec(prop::option::of(extreme()), 3),
        mark in prop::option::of((extreme(), extreme(), extreme())),
    ) {
        let edit = Edit {
            removed: Vec::new(),
            added,
            log_floor: numbers[0].map(FileId),
            next_id: numbers[1].map(FileId),
            last_seq: numbers[2],
            log_mark: mark.map(|(log, bytes, next_seq)| LogMark { log: FileId(log), bytes, next_seq }),
            time: None,
        };
        let decoded = decode_payload(&encode_payload(&edit));
        match encode_edit(&edit, tag(HEADER)) {
            Ok(_) => prop_assert_eq!(decoded, Some(edit)),
            Err(Error::NumbersExhausted { .. } | Error::Unencodable { .. }) => prop_assert_eq!(decoded, None),
            Err(error) => panic!("{error}"),
        }
    }
}
