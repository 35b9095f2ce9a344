//! Records of the log in wrong places, where misdirected writes put them.

use super::{TestLog, is_corruption};

/// The head of a longer record in place of the last one is damage, not a torn end.
#[test]
fn i6_the_head_of_another_record_is_damage_not_a_torn_end() {
    let mut log = TestLog::new();
    log.append(&[500]).append(&[10]).append(&[10]);
    let (whole, bounds) = (log.bytes(), log.bounds.clone());
    for at in [bounds[1], bounds[2]] {
        let mut bytes = whole.clone();
        bytes.copy_within(bounds[0]..bounds[0] + bounds[2] - bounds[1], at);
        assert!(is_corruption(&log.prefix_in(&bytes)), "at {at}");
    }
}

#[test]
fn a_salvage_keeps_the_batches_behind_a_second_copy_of_a_later_record() {
    let mut log = TestLog::new();
    log.append(&[20; 6]);
    let (whole, bounds) = (log.bytes(), log.bounds.clone());
    let mut bytes = whole.clone();
    bytes.copy_within(bounds[4]..bounds[5], bounds[1]);
    let (kept, unreadable) = log.salvaged_from(&bytes);
    assert_eq!(kept, [0, 2, 3, 4, 5]);
    assert_eq!(unreadable.bytes, 0, "the copy is a valid record");
}
