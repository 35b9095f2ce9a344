//! A gap record that a misdirected write put in the wrong place. Its checksums are right, and it claims that
//! numbers are unused.

use super::*;

/// A gap record for the log with these bytes: the next operation has number `next`.
fn gap(log: &[u8], next: u64) -> Vec<u8> {
    let tag = log[40..44].try_into().unwrap();
    LogRecord { tag, numbers: [0, 0, next, 0], payload: Vec::new(), len: 0 }.encode()
}

/// A store of two logs. In the first one, a gap up to `next` begins `skip` bytes after the start of record
/// `n`. Also returns the number of writes.
fn misplaced(n: u64, skip: usize, next: impl Fn(u64) -> u64) -> (SimFs, u64) {
    let (fs, counts) = two_logs();
    let first = &logs(&fs)[0];
    let mut bytes = fs.read(first).unwrap();
    let at = bounds(&bytes)[n as usize] + skip;
    let all = counts[0] + counts[1];
    let record = gap(&bytes, next(all));
    bytes[at..at + record.len()].copy_from_slice(&record);
    (with(&fs, first, &bytes), all)
}

#[test]
fn a_misplaced_gap_hides_no_operation_of_later_logs_from_a_repair() {
    // Up to the end of the second log, beyond it, or into it.
    for next in [|all| all + 1, |all| all + 1000, |all| all] {
        let (fs, all) = misplaced(2, 0, next);
        let first = &logs(&fs)[0];
        assert!(options(&fs).open(STORE).is_err());
        let report = repair(&fs);
        assert_eq!(damage_of(&report.set_aside[0]).0, first.display().to_string());
        let salvage = report.logs.unwrap();
        assert_eq!((salvage.operations_kept, salvage.operations_lost), (all - 1, vec![3..=3]));
        assert_works(&fs, (0..all).filter(|n| *n != 2));
    }
}

/// A misplaced gap does not explain the loss of the record that it damaged.
#[test]
fn a_misplaced_gap_does_not_explain_the_loss_of_the_record_it_damaged() {
    for n in [1, 2, 3] {
        let (fs, all) = misplaced(n, 60, |_| n + 2);
        let salvage = repair(&fs).logs.unwrap();
        assert_eq!((salvage.operations_kept, salvage.operations_lost), (all - 1, vec![n + 1..=n + 1]));
        assert_works(&fs, (0..all).filter(|other| *other != n));
    }
}
