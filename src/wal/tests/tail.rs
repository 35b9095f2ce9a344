//! A tail reads a growing log as a replay would, no matter what it has seen of an append.

use super::*;
use crate::fs::Fs;
use crate::wal::LogTail;

#[test]
fn a_tail_passes_each_batch_once_whatever_part_of_the_log_it_saw_between() {
    let mut log = TestLog::new();
    log.append(&[10]).append(&[10, 3000, 0]).append(&[5]);
    log.writer.append_gap(FIRST + 50).unwrap();
    let whole = log.bytes();
    for step in [1, 7, 40, 41, 100, whole.len()] {
        log.fs.write("grows", &whole[..0]);
        let path = Path::new("grows");
        let mut passed = Vec::new();
        let mut sink = |seq, payload, count| {
            passed.push((seq, payload, count));
            Ok(())
        };
        let mut file = log.fs.append(path).unwrap();
        let mut tail = LogTail::open(&log.fs, path, ID, STORE, None).unwrap();
        assert_eq!(tail.first_seq().unwrap(), None);
        assert_eq!(tail.read(FIRST, &mut sink).unwrap(), None);
        let mut last = None;
        for part in whole.chunks(step) {
            file.append(part).unwrap();
            last = tail.read(FIRST, &mut sink).unwrap();
        }
        assert_eq!(last, Some(FIRST + 50), "in steps of {step}");
        assert_eq!(tail.first_seq().unwrap(), Some(FIRST));
        assert_eq!(passed, log.written, "in steps of {step}");
    }
}

#[test]
fn i6_a_tail_reports_damage_each_time_and_passes_what_precedes_it_once() {
    let mut log = TestLog::new();
    log.append(&[10]);
    let good = log.bytes().len();
    log.append(&[10]).append(&[10]);
    let mut bytes = log.bytes();
    bytes[good + 20] ^= 1;
    log.fs.write("damaged", bytes);
    let mut tail = LogTail::open(&log.fs, Path::new("damaged"), ID, STORE, None).unwrap();
    let mut passed = 0;
    for _ in 0..3 {
        let error = tail.read(FIRST, &mut |_, _, _| {
            passed += 1;
            Ok(())
        });
        assert!(matches!(error, Err(Error::Corruption { offset, .. }) if offset == good as u64), "{error:?}");
    }
    assert_eq!(passed, 1);
    let mut other = LogTail::open(&log.fs, Path::new("log"), FileId(ID.0 + 1), STORE, None).unwrap();
    assert!(matches!(other.first_seq(), Err(Error::Corruption { .. })));
}
