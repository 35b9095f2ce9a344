//! Sequence numbers that no operation of a log has.

use super::*;

#[test]
fn a_group_that_leaves_a_gap_is_refused() {
    let mut log = TestLog::new();
    let late = LogRecord { first_seq: FIRST + 1, count: 1, payload: b"" };
    assert!(matches!(log.writer.append_group([late]), Err(Error::Internal(_))));
}

#[test]
fn a_gap_moves_on_and_never_back() {
    let mut log = TestLog::new();
    log.append(&[10]);
    log.writer.append_gap(FIRST + 50).unwrap();
    assert!(matches!(log.writer.append_gap(FIRST), Err(Error::Internal(_))));
    let mut batch = Batch::new();
    batch.put(b"k", b"v");
    let payload = batch.into_bytes();
    log.writer.append_group([LogRecord { first_seq: FIRST + 50, count: 1, payload: &payload }]).unwrap();
    let (replayed, outcome) = log.replay("log", EXPECTED);
    assert_eq!(outcome.unwrap(), log.whole(FIRST + 51, FIRST + 51));
    assert_eq!(replayed, [log.written[0].clone(), (FIRST + 50, payload, 1)]);
}

/// A gap has no payload, which would end a varint that a flipped bit makes longer.
#[test]
fn i6_every_flipped_bit_in_a_gap_at_the_end_is_corruption() {
    let mut log = TestLog::new();
    log.append(&[10]).sync().writer.append_gap(FIRST + 50).unwrap();
    let bytes = log.bytes();
    for (at, bit) in (log.bounds[1]..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, 1 << bit))) {
        let mut flipped = bytes.clone();
        flipped[at] ^= bit;
        assert!(is_corruption(&log.prefix_in(&flipped)), "byte {at}, bit {bit}");
    }
}
