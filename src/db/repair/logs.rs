//! Repair of logs: all that is readable of them, before the damage and behind it, becomes one new log.
//!
//! 1. Logs that replay as an opening would replay them stay as they are.
//! 2. Otherwise (bytes that the disk does not give are damage like others) every batch that can be read goes into a new log under its own sequence number, and a gap stands where numbers are
//!    missing. What was written later is newer than what is lost, so keeping it is safe; but a lost operation leaves the key that it
//!    changed as it was before, and nobody knows which key that was.
//! 3. The logs with damage get a second name, under which they stay. Then a new manifest makes the new log the first one.
//!
//! A crash before the new manifest leaves all old logs, and perhaps the new one. The next repair starts again: batches that it finds
//! twice count once.

use super::report::{LogSalvage, LostRange};
use super::workspace::Repair;
use crate::db::names::{TEMPORARY, next_free_id};
use crate::db::replay::{needed_logs, replay_all};
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{LogMark, Manifest, ManifestState};
use crate::segment::is_damage;
use crate::wal::{self, ExpectedLog, LogRecord};
use bytes::Bytes;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;

impl Repair<'_> {
    /// Makes the logs replayable.
    pub(super) fn mend_logs(&mut self, state: &ManifestState) -> Result<()> {
        let names = self.fs.list(self.path)?;
        let outcome = replay_all(&*self.fs, self.path, state, &names, &mut |_, _, _| Ok(()));
        match &outcome {
            // Segments may hold what is missing between two logs when the manifest that said so is lost.
            Ok(outcome) if !(outcome.left_out && self.report.rebuilt) => return Ok(()),
            Ok(_) => {}
            Err(error) if is_damage(error) => {}
            Err(error) => return Err(error.clone()),
        }
        let id = FileId(next_free_id(state, &names));
        let (path, tmp) = (self.path_of(id), self.path_of(id).with_extension(format!("wal{TEMPORARY}")));
        if self.fs.file_len(&tmp)?.is_some() {
            self.fs.remove(&tmp)?;
        }
        let writer = wal::LogWriter::create(&*self.fs, &tmp, id, state.header.store_id, state.last_seq + 1)?;
        let in_segments = state.segments.values().map(|meta| meta.max_seq).max().unwrap_or(0);
        let mut merged = Merged { writer, in_segments, salvage: LogSalvage::default() };
        let mut damaged = Vec::new();
        for log in self.by_age(needed_logs(state, &names)) {
            let from = ExpectedLog {
                id: log,
                store_id: state.header.store_id,
                next_seq: merged.writer.next_seq(),
                synced: 0,
            };
            let log_path = self.path_of(log);
            let mut keep = |first_seq, payload: Bytes, count| merged.append(first_seq, &payload, count);
            let unreadable = wal::salvage(&*self.fs, &log_path, from, &mut keep)?;
            if let Some(offset) = unreadable.first {
                merged.salvage.bytes_unreadable += unreadable.bytes;
                let what = format!("{} bytes of the log cannot be read", unreadable.bytes);
                damaged.push((log, Error::corruption(&log_path, offset, what)));
            }
        }
        let mark = merged.finish(id, state.log_mark)?;
        self.fs.rename(&tmp, &path)?;
        for (log, why) in damaged.iter().cloned() {
            self.report.bytes_set_aside += self.fs.file_len(&self.path_of(log))?.unwrap_or(0);
            self.keep_aside(&log.file_name(FileKind::Wal))?;
            self.report.set_aside.push(why);
        }
        self.fs.sync_dir(self.path)?;
        let next_id = FileId(id.0.saturating_add(1));
        let state = ManifestState { log_floor: id, next_id, log_mark: Some(mark), ..state.clone() };
        Manifest::create(Arc::clone(&self.fs), self.path, &state)?;
        damaged.iter().try_for_each(|(log, _)| self.fs.remove(&self.path_of(*log)))?;
        tracing::warn!(salvage = ?merged.salvage, "the logs were damaged and written anew");
        let mut incomplete: Vec<PathBuf> = damaged.iter().map(|(log, _)| self.path_of(*log)).collect();
        if incomplete.is_empty() {
            incomplete.extend(match outcome {
                Err(Error::Corruption { file, .. }) => Some(file),
                // Another try could read all of it; what is lost was not there to be read.
                Err(Error::Io { path, .. }) if !merged.salvage.operations_lost.is_empty() => Some(path),
                _ => None,
            });
        }
        self.report.lost.extend(incomplete.into_iter().map(|file| LostRange {
            file,
            first: Bound::Unbounded,
            last: Bound::Unbounded,
        }));
        self.report.rebuilt = true;
        self.report.logs = Some(merged.salvage);
        Ok(())
    }

    fn path_of(&self, log: FileId) -> PathBuf {
        self.path.join(log.file_name(FileKind::Wal))
    }

    /// The logs by their first sequence numbers; one whose header is unreadable comes behind the one before it. A repair that was
    /// interrupted has left a log of a high number with old operations.
    fn by_age(&self, logs: Vec<FileId>) -> Vec<FileId> {
        let mut first_seq = 0;
        let mut aged: Vec<(Seq, FileId)> = Vec::with_capacity(logs.len());
        for id in logs {
            if let Ok(Some(header)) = wal::identify(&*self.fs, &self.path_of(id)) {
                first_seq = header.first_seq;
            }
            aged.push((first_seq, id));
        }
        aged.sort_unstable();
        aged.into_iter().map(|(_, id)| id).collect()
    }
}

/// The new log.
struct Merged {
    writer: wal::LogWriter,
    /// The greatest sequence number in any segment.
    in_segments: Seq,
    salvage: LogSalvage,
}

impl Merged {
    fn append(&mut self, first_seq: Seq, payload: &[u8], count: u32) -> Result<()> {
        self.skip_to(first_seq)?;
        self.salvage.operations_kept += u64::from(count);
        self.writer.append_group(&[LogRecord { first_seq, count, payload }])
    }

    /// Leaves a gap, if the next number is greater. What stands in segments is not lost.
    fn skip_to(&mut self, next_seq: Seq) -> Result<()> {
        if next_seq <= self.writer.next_seq() {
            return Ok(());
        }
        let first_lost = self.writer.next_seq().max(self.in_segments + 1);
        if first_lost < next_seq {
            self.salvage.operations_lost.push(first_lost..=next_seq - 1);
        }
        self.writer.append_gap(next_seq)
    }

    /// Moves beyond every number that was ever given, and syncs.
    fn finish(&mut self, id: FileId, old: Option<LogMark>) -> Result<LogMark> {
        self.skip_to(self.in_segments + 1)?;
        self.skip_to(old.map_or(0, |mark| mark.next_seq))?;
        self.writer.sync()?;
        Ok(LogMark { log: id, bytes: self.writer.len(), next_seq: self.writer.next_seq() })
    }
}
