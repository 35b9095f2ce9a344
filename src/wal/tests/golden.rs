//! The bytes of a log.

use super::*;
use crate::key::{Expiry, Time};
use crate::ranges::DeletedRange;
use std::time::Duration;

#[test]
fn the_bytes_of_a_log_are_those_of_the_golden_file() {
    let log = TestLog::new();
    let mut bytes = log.bytes();
    let mut batch = Batch::new();
    batch.put(b"apple", b"red");
    batch.delete(b"pear");
    let tag = LogHeader::tag(ID, STORE);
    encode_record(&mut bytes, tag, FIRST, 2, 0, &batch.into_bytes()).unwrap();
    let mut batch = Batch::new();
    batch.put(b"", b"the empty key");
    let synced = bytes.len() as u64;
    encode_record(&mut bytes, tag, FIRST + 2, 1, synced, &batch.into_bytes()).unwrap();
    let mut batch = Batch::new();
    batch.delete_range("a".."b");
    // As in a log of a release without keyspaces.
    batch.push_range(&DeletedRange { start: vec![0xff], end: None });
    encode_record(&mut bytes, tag, FIRST + 3, 2, synced, &batch.into_bytes()).unwrap();
    let mut batch = Batch::new();
    batch.put_with("fig", "ripe", Expiry::after(Duration::from_millis(1500)));
    batch.date(Time::of_millis(1_800_000_000_000), true).unwrap();
    encode_record(&mut bytes, tag, FIRST + 5, 2, synced, &batch.into_bytes()).unwrap();
    let record = |len, count, seq, synced| {
        let head = [(4, "record: tag of log and store"), (4, "CRC-32 of the head")];
        let payload = [(4, "CRC-32 of the payload and the end"), (1, len), (1, count), (1, seq), (1, synced)];
        head.into_iter().chain(payload)
    };
    let fields: Vec<(usize, &str)> = [
        (8, "magic"),
        (4, "version 4"),
        (8, "log id 7"),
        (8, "store id"),
        (8, "first sequence number 100"),
        (4, "CRC-32 of the header"),
    ]
    .into_iter()
    .chain(record("payload of 17 bytes", "2 operations", "sequence number 100", "nothing synced"))
    .chain([(1, "put"), (2, "lengths of key and value"), (8, "apple, red")])
    .chain([(1, "tombstone"), (1, "length of key"), (4, "pear"), (1, "end")])
    .chain(record("payload of 16 bytes", "1 operation", "sequence number 102", "74 bytes synced"))
    .chain([(1, "put"), (2, "lengths of key and value"), (13, "empty key, its value"), (1, "end")])
    .chain(record("payload of 9 bytes", "2 operations", "sequence number 103", "74 bytes synced"))
    .chain([(1, "range tombstone"), (2, "lengths of start and end"), (2, "a, b")])
    .chain([(1, "range tombstone"), (2, "lengths of start and end"), (1, "start; no end"), (1, "end")])
    .chain(record("payload of 23 bytes", "2 operations", "sequence number 105", "74 bytes synced"))
    .chain([(1, "put that expires"), (2, "lengths of key and value"), (3, "fig"), (6, "expiry"), (4, "ripe")])
    .chain([(1, "time"), (6, "moment"), (1, "end")])
    .collect();
    crate::golden::check("wal", &bytes, &fields);
    log.fs.write("golden", &*bytes);
    let replayed = log.replay_as("golden", ID, STORE, FIRST).1.unwrap();
    assert_eq!((replayed.next_seq, replayed.end), (FIRST + 7, LogEnd::Clean));
}
