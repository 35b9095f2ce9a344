//! Replays the logs that a manifest needs, in order, and decides whether a crash explains what is missing.

use crate::engine::storage::names::unusual_number;
use crate::error::{Error, Result};
use crate::fs::{Fs, ReadFile};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::ManifestState;
use crate::wal::{self, ExpectedLog, LogEnd, ReadTo};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// The result of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReplayOutcome {
    /// The sequence number after the last operation.
    pub next_seq: Seq,
    /// Whether readable operations were left out because unsynced ones before them are lost.
    pub left_out: bool,
    /// Whether a log ends in an unfinished record.
    pub torn: bool,
    /// The last log that was replayed.
    pub last: Option<LastLog>,
}

/// A log that was replayed after all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastLog {
    pub id: FileId,
    /// How far it was read; `None` if it has no header.
    pub read: Option<ReadTo>,
    /// The sequence number after the last operation before this log.
    pub expected: Seq,
}

/// The logs among `names` that are still needed, oldest first.
pub(crate) fn needed_logs(state: &ManifestState, names: &[String]) -> Vec<FileId> {
    let ids = names.iter().filter_map(|name| FileKind::parse(name));
    let is_needed = |(id, kind)| (kind == FileKind::Wal && id >= state.log_floor).then_some(id);
    let mut logs: Vec<FileId> = ids.filter_map(is_needed).collect();
    logs.sort_unstable();
    logs
}

/// Passes every batch that is not in segments yet to `sink`, in order: its log, first sequence number, bytes
/// and number of operations.
///
/// # Errors
/// [`Error::Corruption`] if operations are missing that no crash can lose: those before a synced one, or
/// before the manifest's log mark. Any error of the file system or of `sink`.
pub(crate) fn replay_all(
    fs: &dyn Fs,
    dir: &Path,
    state: &ManifestState,
    names: &[String],
    sink: &mut dyn FnMut(FileId, Seq, Bytes, u32) -> Result<()>,
) -> Result<ReplayOutcome> {
    let open = |id: FileId| {
        let file = fs.open(&dir.join(id.file_name(FileKind::Wal)))?;
        let len = file.len()?;
        Ok((file, len))
    };
    replay_logs(dir, state, needed_logs(state, names), &open, sink)
}

/// Opens a log, and tells how many of its bytes to read.
pub(crate) type OpenLog<'a> = &'a dyn Fn(FileId) -> Result<(Arc<dyn ReadFile>, u64)>;

/// [`replay_all`] of the logs that a state needs.
///
/// # Errors
/// The errors of [`replay_all`] and of `open`.
pub(crate) fn replay_logs(
    dir: &Path,
    state: &ManifestState,
    logs: Vec<FileId>,
    open: OpenLog<'_>,
    sink: &mut dyn FnMut(FileId, Seq, Bytes, u32) -> Result<()>,
) -> Result<ReplayOutcome> {
    let path_of = |id: FileId| dir.join(id.file_name(FileKind::Wal));
    let mark = state.log_mark.filter(|mark| mark.log >= state.log_floor);
    if let Some(mark) = mark.filter(|mark| !logs.contains(&mark.log)) {
        let what =
            "the manifest needs this log, but the file is missing: restore it, or run `sidebloom repair`";
        return Err(Error::corruption(path_of(mark.log), 0, what));
    }
    let mut outcome = ReplayOutcome { next_seq: state.last_seq + 1, ..ReplayOutcome::default() };
    for (i, id) in logs.into_iter().enumerate() {
        let (is_first, path) = (i == 0, path_of(id));
        if !id.is_usual() {
            return Err(unusual_number(path));
        }
        let synced = mark.filter(|mark| mark.log == id).map_or(0, |mark| mark.bytes);
        let expected =
            ExpectedLog { id, store_id: state.header.store_id, next_seq: outcome.next_seq, synced };
        let (file, len) = open(id)?;
        let sink = &mut |seq, payload, count| sink(id, seq, payload, count);
        let replayed = wal::replay_start(file, len, expected, sink)?;
        if !matches!(replayed.end, LogEnd::Gap { .. }) {
            outcome.last = Some(LastLog { id, read: replayed.read, expected: outcome.next_seq });
        }
        let before_mark = mark.is_some_and(|mark| id < mark.log);
        let up_to_mark = mark.is_some_and(|mark| id <= mark.log);
        match replayed.end {
            LogEnd::Clean => {}
            // Not even a header: a rotation failed, and so did the removal of its file. If the log had held
            // anything, the next one would start with a gap.
            LogEnd::Torn { offset: 0 } if before_mark => {}
            LogEnd::Torn { offset } | LogEnd::Lost { offset } if before_mark => {
                let what = "the log ends here, although it was synced beyond this point: synced writes are missing; run `sidebloom repair`";
                return Err(Error::corruption(&path, offset, what));
            }
            LogEnd::Torn { offset } => {
                outcome.torn = true;
                tracing::info!(log = %path.display(), offset, "log ends in an unfinished record, which was never acknowledged as durable");
            }
            LogEnd::Lost { offset } => {
                tracing::warn!(log = %path.display(), offset, "unsynced writes from this offset on did not reach the disk");
                outcome.left_out = true;
            }
            // The first log starts where the manifest says that the segments end, so a gap before it is a
            // fault of the manifest.
            LogEnd::Gap { first_seq, .. } if is_first => {
                let what = format!(
                    "the log starts at operation {first_seq}, but the manifest ends at {}: the manifest has lost its last edits; run `sidebloom repair`",
                    state.last_seq
                );
                return Err(Error::corruption(&path, 0, what));
            }
            LogEnd::Gap { first_seq, had_synced } if had_synced || up_to_mark => {
                let what = format!(
                    "the log starts at operation {first_seq}, but the previous log ends at {}, and both were synced: synced writes are missing; \
                     run `sidebloom repair`",
                    outcome.next_seq - 1
                );
                return Err(Error::corruption(&path, 0, what));
            }
            LogEnd::Gap { .. } => {
                tracing::warn!(log = %path.display(), "the unsynced end of the previous log is lost; skipping this log");
                outcome.left_out = true;
            }
        }
        outcome.next_seq = replayed.next_seq;
    }
    Ok(outcome)
}
