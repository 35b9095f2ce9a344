//! Repair of logs: everything readable before and after the damage becomes one new log.
//!
//! 1. If the logs replay without an error, as at opening, they stay as they are.
//! 2. Otherwise every readable batch goes into a new log under its own sequence number, with gaps where
//!    numbers are missing. Bytes that the disk cannot read count as damaged. Later batches are newer than the
//!    lost ones, so it is safe to keep them. But a lost operation leaves its key with an older value, and
//!    nobody knows which key that is.
//! 3. The damaged logs are kept under a second name. Then a new manifest makes the new log the first one.
//!
//! A crash before the new manifest leaves all old logs, and perhaps the new one. The next repair starts again
//! and counts duplicate batches once.

use super::report::{LogSalvage, LostRange};
use super::workspace::Repair;
use crate::engine::open::replay::{needed_logs, replay_all};
use crate::engine::storage::names::{next_free_id, unusual_number};
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind, TEMPORARY};
use crate::key::Seq;
use crate::manifest::{LogMark, Manifest, ManifestState};
use crate::segment::is_damage;
use crate::wal::{self, ExpectedLog, LogHeader, LogRecord, LogStart};
use bytes::Bytes;
use std::ops::{Bound, Range};
use std::path::PathBuf;
use std::sync::Arc;

impl Repair<'_> {
    /// Makes the logs replayable, and writes a manifest if the old one is lost. Returns the number that the
    /// next operation will have.
    pub(super) fn repair_logs(&mut self, state: &ManifestState) -> Result<Seq> {
        let names = self.fs.list(self.path)?;
        let outcome = replay_all(&*self.fs, self.path, state, &names, &mut |_, _, _, _| Ok(()));
        match &outcome {
            // Without the manifest, segments may hold what seems to be missing between two logs, and nothing
            // says what was synced.
            Ok(outcome)
                if self.is_manifest_lost
                    && (outcome.left_out || self.is_any_start_damaged(state, &names)?) => {}
            Ok(outcome) => {
                if self.is_manifest_lost {
                    Manifest::create(Arc::clone(&self.fs), self.path, state)?;
                }
                return Ok(outcome.next_seq);
            }
            Err(error) if is_damage(error) => {}
            Err(error) => return Err(error.clone()),
        }
        let id = FileId(next_free_id(state, &names));
        let (path, tmp) = (self.log_path(id), self.log_path(id).with_extension(format!("wal{TEMPORARY}")));
        if self.fs.file_len(&tmp)?.is_some() {
            self.fs.remove(&tmp)?;
        }
        let writer = wal::LogWriter::create(&*self.fs, &tmp, id, state.header.store_id, state.last_seq + 1)?;
        let mut merged = MergedLog {
            writer,
            in_segments: self.in_segments,
            left_out: Vec::new(),
            salvage: self.report.logs.take().unwrap_or_default(),
        };
        let mut damaged = Vec::new();
        for log in self.by_age(needed_logs(state, &names), state.header.store_id) {
            let from = ExpectedLog {
                id: log,
                store_id: state.header.store_id,
                next_seq: merged.writer.next_seq(),
                synced: 0,
            };
            let log_path = self.log_path(log);
            let mut keep = |first_seq, payload: Bytes, count| merged.append(first_seq, &payload, count);
            let found = if self.is_store_unknown { wal::find_tag(&*self.fs, &log_path)? } else { None };
            let tag = found.unwrap_or_else(|| LogHeader::tag(log, state.header.store_id));
            let unreadable = wal::salvage(&*self.fs, &log_path, from, tag, &mut keep)?;
            if !log.leaves_room() {
                damaged.push((log, unusual_number(log_path)));
            } else if let Some(offset) = unreadable.first {
                merged.salvage.bytes_unreadable =
                    merged.salvage.bytes_unreadable.saturating_add(unreadable.bytes);
                let what = format!("cannot read {} bytes of the log", unreadable.bytes);
                damaged.push((log, Error::corruption(&log_path, offset, what)));
            }
        }
        let mark = merged.finish(id, state.newest_in_segments(), state.log_mark)?;
        self.fs.rename(&tmp, &path)?;
        for (log, why) in damaged.iter().cloned() {
            self.count_aside(&self.log_path(log))?;
            self.keep_aside(&log.file_name(FileKind::Wal))?;
            self.report.set_aside.push(why);
        }
        self.fs.sync_dir(self.path)?;
        let next_id = FileId(id.0.saturating_add(1));
        let state = ManifestState { log_floor: id, next_id, log_mark: Some(mark), ..state.clone() };
        Manifest::create(Arc::clone(&self.fs), self.path, &state)?;
        damaged.iter().try_for_each(|(log, _)| self.fs.remove(&self.log_path(*log)))?;
        tracing::warn!(salvage = ?merged.salvage, "rewrote damaged logs");
        let mut incomplete: Vec<PathBuf> = damaged.iter().map(|(log, _)| self.log_path(*log)).collect();
        if incomplete.is_empty() {
            incomplete.extend(match outcome {
                Err(Error::Corruption { file, .. }) => Some(file),
                // The second read found every byte, so only operations that were never in the file are lost.
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
        Ok(mark.next_seq)
    }

    fn is_any_start_damaged(&self, state: &ManifestState, names: &[String]) -> Result<bool> {
        for id in needed_logs(state, names) {
            if self.log_start(id, state.header.store_id)? == LogStart::Damaged {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The logs in order of their first sequence numbers; a log with an unreadable header follows its
    /// predecessor. An interrupted repair may have left a log with a high number and old operations.
    fn by_age(&self, logs: Vec<FileId>, store_id: u64) -> Vec<FileId> {
        let mut first_seq = 0;
        let mut aged: Vec<(Seq, FileId)> = Vec::with_capacity(logs.len());
        for id in logs {
            if let Ok(LogStart::At(seq)) = self.log_start(id, store_id) {
                first_seq = seq;
            }
            aged.push((first_seq, id));
        }
        aged.sort_unstable();
        aged.into_iter().map(|(_, id)| id).collect()
    }
}

/// The new log, which takes the readable batches of all others.
struct MergedLog {
    writer: wal::LogWriter,
    /// Operations up to this one are not lost if they are missing here.
    in_segments: Seq,
    /// Numbers that the logs leave out: no operation had them, or an earlier repair has reported their loss.
    /// They take precedence over records that seem to have these numbers, because a misdirected write may
    /// have put those here.
    left_out: Vec<Range<Seq>>,
    salvage: LogSalvage,
}

impl MergedLog {
    fn append(&mut self, first_seq: Seq, payload: &[u8], count: u32) -> Result<()> {
        if count == 0 {
            self.left_out.push(self.writer.next_seq()..first_seq);
            return Ok(());
        }
        self.skip_to(first_seq)?;
        self.salvage.operations_kept += u64::from(count);
        self.writer.append_group([LogRecord { first_seq, count, payload }])
    }

    /// Leaves a gap up to `next_seq`. Operations in segments do not count as lost.
    fn skip_to(&mut self, next_seq: Seq) -> Result<()> {
        if next_seq <= self.writer.next_seq() {
            return Ok(());
        }
        let mut first_lost = self.writer.next_seq().max(self.in_segments + 1);
        for numbers in self.left_out.drain(..).filter(|numbers| numbers.end <= next_seq) {
            first_lost = if numbers.contains(&first_lost) { numbers.end } else { first_lost };
        }
        if first_lost < next_seq {
            self.salvage.operations_lost.push(first_lost..=next_seq - 1);
        }
        self.writer.append_gap(next_seq)
    }

    /// Skips every sequence number that was ever used, and syncs.
    fn finish(&mut self, id: FileId, in_segments: Seq, old: Option<LogMark>) -> Result<LogMark> {
        self.skip_to(in_segments + 1)?;
        self.skip_to(old.map_or(0, |mark| mark.next_seq))?;
        self.writer.sync()?;
        Ok(LogMark { log: id, bytes: self.writer.len(), next_seq: self.writer.next_seq() })
    }
}
