//! Invariant I4 on a simulated disk: no matter what a crash leaves of two logs, the replay gives a prefix of
//! what was written, including everything synced.

use super::reader::Replay;
use super::{Batch, ExpectedLog, LogEnd, LogRecord, LogWriter, replay};
use crate::error::Result;
use crate::fs::{Fs, create_dir_durably};
use crate::id::FileId;
use crate::key::Seq;
use crate::support::{Crash, Errno, Fault, Rng, SimFs};
use bytes::Bytes;
use std::path::{Path, PathBuf};

const STORE: u64 = 77;

fn path(id: u64) -> PathBuf {
    Path::new("db").join(FileId(id).file_name(crate::id::FileKind::Wal))
}

/// What was written, and the sequence number up to which everything was synced.
#[derive(Default)]
struct Written {
    written: Vec<(Seq, Bytes, u32)>,
    next_seq: Seq,
    synced_below: Seq,
}

impl Written {
    fn group(&mut self, rng: &mut Rng) -> std::ops::Range<usize> {
        let start = self.written.len();
        for _ in 0..1 + rng.below(3) {
            let mut batch = Batch::new();
            for _ in 0..1 + rng.below(3) {
                // Values of zeros look like lost sectors.
                let byte = if rng.percent(30) { 0 } else { rng.next() as u8 };
                let size = *rng.pick(&[0, 20, 100, 470, 600, 3000]);
                batch.put(rng.next().to_be_bytes(), vec![byte; size]);
            }
            let count = batch.len() as u32;
            self.written.push((self.next_seq, batch.into_bytes(), count));
            self.next_seq += u64::from(count);
        }
        start..self.written.len()
    }

    /// Writes two logs until something fails. The first is synced before any part of the second.
    fn write(&mut self, fs: &SimFs, rng: &mut Rng, sync_percent: u64) -> Result<()> {
        self.next_seq = 1;
        let mut earlier: Option<LogWriter> = None;
        for id in [1, 2] {
            let mut writer = LogWriter::create(fs, &path(id), FileId(id), STORE, self.next_seq)?;
            for _ in 0..rng.below(12) {
                let group = self.group(rng);
                let records: Vec<_> = self.written[group]
                    .iter()
                    .map(|(first_seq, payload, count)| LogRecord {
                        first_seq: *first_seq,
                        count: *count,
                        payload,
                    })
                    .collect();
                writer.append_group(records)?;
                if rng.percent(sync_percent) {
                    earlier.take().map_or(Ok(()), |mut earlier| earlier.sync())?;
                    writer.sync()?;
                    self.synced_below = self.next_seq;
                }
            }
            earlier = Some(writer);
        }
        Ok(())
    }

    /// Replays the logs on the disk, up to the first gap between two of them.
    fn check(&self, fs: &SimFs, context: &str) {
        let mut replayed = Vec::new();
        let mut next = 1;
        for id in [1, 2] {
            if fs.file_len(&path(id)).unwrap().is_none() {
                continue;
            }
            let expected = ExpectedLog { id: FileId(id), store_id: STORE, next_seq: next, synced: 0 };
            let outcome = replay(fs, &path(id), expected, &mut |seq, payload, count| {
                replayed.push((seq, payload, count));
                Ok(())
            });
            let Replay { next_seq, end, .. } =
                outcome.unwrap_or_else(|e| panic!("{context}: {e}\n{}", fs.log()));
            assert!(!matches!(end, LogEnd::Gap { had_synced: true, .. }), "{context}: {end:?}");
            next = next_seq;
        }
        assert!(self.written.starts_with(&replayed), "{context}: not a prefix");
        assert!(next >= self.synced_below, "{context}: {next} replayed of {} synced", self.synced_below);
    }
}

fn check_all_crashes(fault: impl Fn(&mut Rng) -> Option<Fault>) {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let fs = SimFs::new();
        create_dir_durably(&fs, Path::new("db")).unwrap();
        if let Some(fault) = fault(&mut rng) {
            fs.fail(fault);
        }
        let mut logs = Written::default();
        let sync_percent = *rng.pick(&[0, 10, 50, 100]);
        let _ = logs.write(&fs, &mut rng, sync_percent);
        for crash in [Crash::Kill, Crash::PowerOrdered, Crash::Power, Crash::Power, Crash::Power] {
            let crash_seed = rng.next();
            let context = format!("seed {seed}, {crash:?} {crash_seed}");
            let found = fs.crash(crash, crash_seed);
            logs.check(&found, &context);
            logs.check(&found.crash(Crash::Power, crash_seed), &format!("{context}, and a power cut"));
        }
    }
}

/// After a crash, the logs hold everything that was synced and a prefix of the rest.
#[test]
fn i4_a_crash_keeps_what_was_synced_and_a_prefix_of_the_rest() {
    check_all_crashes(|_| None);
}

/// A disk that fills up or dies in the middle of an append leaves a prefix.
#[test]
fn i4_i5_a_disk_that_fails_during_an_append_leaves_a_prefix() {
    check_all_crashes(|rng| Some(Fault::stop(rng.below(30)).with(Errno::NoSpace).short()));
}
