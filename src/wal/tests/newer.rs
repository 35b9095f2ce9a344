//! Operations that only a newer version knows.

use super::*;

/// A log of three records, the second of which begins with an operation of this kind.
fn with_operation(log: &TestLog, kind: u8) -> Vec<u8> {
    let tag = LogHeader::tag(ID, STORE);
    let mut bytes = log.bytes();
    bytes.truncate(log.bounds[1]);
    let mut payload = log.written[1].1.to_vec();
    payload[0] = kind;
    encode_record(&mut bytes, tag, FIRST + 1, 1, 0, &payload).unwrap();
    encode_record(&mut bytes, tag, FIRST + 2, 1, 0, &log.written[2].1).unwrap();
    bytes
}

/// Neither replayed up to this point nor left out of a repair: both would lose what was written.
#[test]
fn i6_an_operation_of_a_newer_version_is_named_by_replay_and_by_salvage() {
    let mut log = TestLog::new();
    log.append(&[10, 20, 30]);
    assert_eq!(log.prefix_in(&with_operation(&log, 1)).unwrap(), (3, LogEnd::Clean));
    for kind in [5, 9, 255] {
        let bytes = with_operation(&log, kind);
        let text = format!(
            "damaged has a record with an operation of kind {kind} at offset {}, which this version does not know: it was written by a \
             newer version of sidebloom",
            log.bounds[1]
        );
        let replayed = log.prefix_in(&bytes).unwrap_err();
        let tag = LogHeader::tag(ID, STORE);
        let salvaged =
            salvage(&log.fs, Path::new("damaged"), EXPECTED, tag, &mut |_, _, _| Ok(())).unwrap_err();
        for error in [replayed, salvaged] {
            assert!(error.to_string().starts_with(&text), "{error}");
            assert!(matches!(error, Error::UnknownCode { .. }));
        }
        // Without the right checksum it is damage.
        let mut damaged = log.bytes();
        damaged[log.bounds[2] - 1 - log.written[1].1.len()] = kind;
        assert!(is_corruption(&log.prefix_in(&damaged)));
    }
}
