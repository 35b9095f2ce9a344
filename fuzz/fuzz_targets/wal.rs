//! The bytes of a log file. Replayed batches can be written again, and replay the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sidebloom::internal::fuzz::{ExpectedLog, LogEnd, LogRecord, LogWriter, identify, ops, replay};
use sidebloom_fuzz::disk::SimFs;
use sidebloom_fuzz::{named, repair};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    ask(bytes);
    let mut repaired = bytes.to_vec();
    if repair::wal(&mut repaired).is_some() {
        ask(&repaired);
    }
});

fn ask(file: &[u8]) {
    let (fs, path) = (SimFs::new(), Path::new("log"));
    fs.write(path, file);
    let Some(Some(header)) = named(identify(&fs, path)) else { return };
    let (id, store, first) = (header.id, header.store_id, header.first_seq);
    let expected = |next_seq| ExpectedLog { id, store_id: store, next_seq, synced: 0 };
    let mut batches = Vec::new();
    let mut next = first;
    let replayed = named(replay(&fs, path, expected(first), &mut |seq, batch, count| {
        assert!(seq >= next, "a batch out of order");
        assert_eq!(ops(batch.clone()).count(), count as usize);
        next = seq + u64::from(count);
        batches.push((seq, batch, count));
        Ok(())
    }));
    // As in a store that lost the preceding log.
    if let Some(earlier) = first.checked_sub(1)
        && let Some(gap) = named(replay(&fs, path, expected(earlier), &mut |_, _, _| unreachable!()))
    {
        assert!(matches!(gap.end, LogEnd::Gap { first_seq, .. } if first_seq == first));
    }
    let Some(replayed) = replayed else { return };
    assert!(replayed.next_seq >= next);

    let copy = Path::new("copy");
    let mut writer = LogWriter::create(&fs, copy, id, store, first).unwrap();
    for (first_seq, batch, count) in &batches {
        if *first_seq > writer.next_seq() {
            writer.append_gap(*first_seq).unwrap();
        }
        writer.append_group([LogRecord { first_seq: *first_seq, count: *count, payload: batch }]).unwrap();
    }
    let mut again = Vec::new();
    let end = replay(&fs, copy, expected(first), &mut |seq, batch, count| {
        again.push((seq, batch, count));
        Ok(())
    });
    let end = end.unwrap();
    assert_eq!((end.next_seq, end.end, again), (next, LogEnd::Clean, batches));
}
