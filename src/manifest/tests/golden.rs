//! The bytes of a manifest.

use super::*;

#[test]
fn the_bytes_of_a_manifest_are_those_of_the_golden_file() {
    let mut state = ManifestState::new(HEADER);
    state.apply(&Edit { log_floor: Some(FileId(1)), ..Edit::default() }).unwrap();
    let mut bytes = encode_header(HEADER);
    bytes.extend(encode_edit(&state.snapshot(), tag(HEADER)).unwrap());
    let flush = Edit {
        added: vec![segment_to(b"zebra", 2)],
        log_floor: Some(FileId(3)),
        next_id: Some(FileId(4)),
        last_seq: Some(1000),
        log_mark: Some(LogMark { log: FileId(3), bytes: 300, next_seq: 1005 }),
        time: Some(Time::of_millis(1_800_000_000_000)),
        ..Edit::default()
    };
    bytes.extend(encode_edit(&flush, tag(HEADER)).unwrap());
    let moved = Edit { removed: vec![FileId(2)], ..Edit::default() };
    bytes.extend(encode_edit(&moved, tag(HEADER)).unwrap());
    let head = |len| {
        [(4, "edit: tag of the store"), (4, len), (4, "CRC-32 of the payload"), (4, "CRC-32 of the head")]
    };
    let fields: Vec<(usize, &str)> = [
        (8, "magic"),
        (4, "version 7"),
        (8, "store id"),
        (4, "hash code: siphash-1-3"),
        (16, "hash key"),
        (4, "CRC-32 of the header"),
    ]
    .into_iter()
    .chain(head("payload of 7 bytes"))
    .chain([(2, "log floor 1"), (2, "next file number 1"), (2, "last sequence number 0"), (1, "end")])
    .chain(head("payload of 66 bytes"))
    .chain([(2, "segment 2 joins"), (1, "level 2"), (1, "format version 5"), (8, "digest")])
    .chain([(2, "4096 bytes of file"), (2, "4000 bytes of data")])
    .chain([(6, "smallest key"), (6, "largest key"), (1, "14 numbers")])
    .chain([(2, "2000 entries"), (1, "2 tombstones"), (1, "longest streak 1"), (1, "2 ranges deleted")])
    .chain([(2, "sequence numbers 2 to 4"), (2, "9000 bytes raw")])
    .chain([(1, "none expires"), (5, "no quartiles of expiries"), (1, "bucket end")])
    .chain([(2, "log floor 3"), (2, "next file number 4"), (3, "last sequence number 1000")])
    .chain([(7, "time")])
    .chain([(6, "300 bytes of log 3 synced, to sequence number 1005"), (1, "end")])
    .chain(head("payload of 3 bytes"))
    .chain([(2, "segment 2 leaves"), (1, "end")])
    .collect();
    crate::golden::check("manifest", &bytes, &fields);
    let mut read = ManifestState::new(HEADER);
    [state.snapshot(), flush, moved].iter().for_each(|edit| drop(read.apply(edit).unwrap()));
    assert_eq!(read_state(&with_bytes(&bytes), Path::new("db")).unwrap(), read);
}
