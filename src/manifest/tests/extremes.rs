//! Numbers that no store has, with valid checksums.

use super::*;

fn read(state: &ManifestState) -> Result<ManifestState> {
    read_state(&with_bytes(&encode_snapshot(state).unwrap()), Path::new("db"))
}

fn state_of(segments: impl IntoIterator<Item = SegmentMeta>) -> ManifestState {
    let segments = segments.into_iter().map(|meta| (meta.id, meta)).collect();
    ManifestState { segments, next_id: FileId(100), ..ManifestState::new(HEADER) }
}

#[test]
fn sums_over_segments_that_would_overflow_are_refused() {
    let with = |change: fn(&mut SegmentSummary)| {
        state_of([1, 2, 3].map(|id| {
            let mut meta = SegmentMeta { place: Place::Level(0), ..segment(id) };
            change(&mut meta.summary);
            meta
        }))
    };
    assert!(read(&with(|_| ())).is_ok());
    let changes: [fn(&mut SegmentSummary); 4] = [
        |of| of.facts.entries = u64::MAX / 2,
        |of| of.facts.ranges = u64::MAX,
        |of| of.file_bytes = 1 << 62,
        |of| of.facts.raw_bytes = u64::MAX - 5,
    ];
    changes.iter().for_each(|change| assert!(is_corruption(&read(&with(*change)))));
}

#[test]
fn keys_that_are_too_long_and_data_longer_than_its_file_are_refused() {
    let long = segment_to(&vec![b'l'; crate::key::MAX_STORED_KEY_BYTES + 1], 1);
    let mut data = segment(2);
    data.summary.data_bytes = data.summary.file_bytes + 1;
    for meta in [long, data] {
        let edit = Edit { added: vec![meta], ..Edit::default() };
        assert_eq!(decode_payload(&format::encode_payload(&edit)), None);
        assert!(matches!(encode_edit(&edit, tag(HEADER)), Err(Error::Unencodable { .. })));
    }
}
