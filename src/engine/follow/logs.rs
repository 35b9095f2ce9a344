//! The logs that a follower reads, each with its memtable. `mod.rs` has the rules.

use crate::engine::open::replay::{needed_logs, replay_all};
use crate::engine::storage::Storage;
use crate::engine::write::log::apply;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::live::LiveSet;
use crate::manifest::ManifestState;
use crate::memtable::Memtable;
use crate::wal::{LogTail, ReadTo};
use std::io::ErrorKind;
use std::sync::Arc;

/// Logs, oldest first. Only the last one grows.
pub(crate) struct FollowedLogs {
    logs: Vec<FollowedLog>,
    /// The last log that need not be looked for again.
    known: FileId,
    /// The sequence number after the last operation in segments and logs.
    next_seq: Seq,
}

pub(crate) struct FollowedLog {
    id: FileId,
    memtable: Arc<Memtable>,
    /// `None` if no more of it is read.
    tail: Option<LogTail>,
    /// Operations before this one are in earlier logs or in segments.
    expected: Seq,
    /// Whether the memtable has everything in the log that segments do not have. Otherwise it may also lack
    /// what earlier logs have.
    is_whole: bool,
    /// The first sequence number in the memtable.
    oldest: Option<Seq>,
    next_seq: Seq,
}

/// Logs were found and read to their current ends.
pub(crate) struct NewLogs {
    pub logs: Vec<FollowedLog>,
    /// Another log exists, but cannot be read yet.
    pub is_pending: bool,
    /// What does not fit, unless the manifest has changed since.
    pub problem: Option<Error>,
}

impl FollowedLog {
    fn new(storage: &Storage, id: FileId, expected: Seq, is_whole: bool) -> Result<Self> {
        let memtable = Arc::new(Memtable::new(storage.options.memtable_bytes)?);
        Ok(FollowedLog { id, memtable, tail: None, expected, is_whole, oldest: None, next_seq: expected })
    }

    /// Reads what was appended since the last call.
    fn read(&mut self, storage: &Storage) -> Result<()> {
        let Some(tail) = &mut self.tail else { return Ok(()) };
        let (memtable, oldest) = (&self.memtable, &mut self.oldest);
        let next_seq = tail.read(self.expected, &mut |seq, payload, _| {
            oldest.get_or_insert(seq);
            apply(memtable, storage, seq, payload, |_, _| ());
            Ok(())
        })?;
        self.next_seq = self.next_seq.max(next_seq.unwrap_or(0));
        Ok(())
    }
}

impl FollowedLogs {
    /// No logs yet, so the manifest's logs are new.
    pub fn none(state: &ManifestState) -> Self {
        FollowedLogs { logs: Vec::new(), known: FileId(0), next_seq: state.last_seq + 1 }
    }

    /// Reads the logs that the manifest needs, as recovery does.
    pub fn replay(storage: &Storage, state: &ManifestState, names: &[String]) -> Result<Self> {
        let ids = needed_logs(state, names);
        let new = |id: &FileId| FollowedLog::new(storage, *id, 0, ids.first() == Some(id));
        let mut logs: Vec<FollowedLog> = ids.iter().map(new).collect::<Result<_>>()?;
        let outcome = replay_all(&*storage.fs, &storage.dir, state, names, &mut |id, seq, payload, _| {
            if let Some(log) = logs.iter_mut().find(|log| log.id == id) {
                apply(&log.memtable, storage, seq, payload, |_, _| ());
                log.oldest.get_or_insert(seq);
            }
            Ok(())
        })?;
        // Skips logs after a gap. A log without a header is being created, or was the last before a crash.
        let last = outcome
            .last
            .map(|last| if last.read.is_some() { last.id } else { FileId(last.id.0.saturating_sub(1)) });
        let known = last.unwrap_or(FileId(0));
        logs.retain(|log| log.id <= known);
        if let (Some(log), Some(last)) = (logs.last_mut(), outcome.last) {
            match last.read {
                Some(_) => {
                    log.tail = Some(open_tail(storage, last.id, last.read)?);
                    (log.expected, log.next_seq) = (outcome.next_seq, outcome.next_seq);
                }
                None => log.next_seq = last.expected,
            }
        }
        let next_seq = logs.last().map_or(state.last_seq + 1, |last| last.next_seq);
        Ok(FollowedLogs { logs, known, next_seq })
    }

    /// The first needed log among `names`: after a repair that lost the manifest's floor, none is known.
    /// `None` for `names` means that they have not changed.
    pub fn floor(&self, state: &ManifestState, names: Option<&[String]>) -> FileId {
        let first = names.map(|names| needed_logs(state, names).first().copied());
        first.map_or(state.log_floor, |first| first.unwrap_or(FileId(self.known.0.saturating_add(1))))
    }

    /// The first log from `floor` on.
    pub fn first_from(&self, floor: FileId) -> Option<FileId> {
        self.logs.iter().map(|log| log.id).find(|id| *id >= floor)
    }

    /// If the first needed log is incomplete, forgets it and all later ones. They are read again as new ones.
    pub fn forget_partial(&mut self, floor: FileId) {
        let first = self.logs.partition_point(|log| log.id < floor);
        if let Some(log) = self.logs.get(first).filter(|log| !log.is_whole) {
            self.known = FileId(log.id.0.saturating_sub(1));
            self.logs.truncate(first);
        }
    }

    /// Reads what was appended to the last log, unless segments have all of it.
    pub fn read_last(&mut self, storage: &Storage, floor: FileId) -> Result<()> {
        if let Some(last) = self.logs.last_mut().filter(|last| last.id >= floor) {
            last.read(storage)?;
            self.next_seq = last.next_seq;
        }
        Ok(())
    }

    /// Reads the logs among `names` that are not followed yet. All others were read to their ends after the
    /// directory was listed.
    pub fn read_new(
        &self,
        storage: &Storage,
        state: &ManifestState,
        floor: FileId,
        names: &[String],
    ) -> Result<NewLogs> {
        let mut new = NewLogs { logs: Vec::new(), is_pending: false, problem: None };
        let ids: Vec<FileId> = needed_logs(state, names).into_iter().filter(|id| *id > self.known).collect();
        let mut is_first = self.logs.last().is_none_or(|last| last.id < floor);
        let mut expected = if is_first { state.last_seq + 1 } else { self.next_seq };
        for id in ids.iter().copied() {
            let mut tail = match open_tail(storage, id, None) {
                Err(error) if is_missing(&error) => {
                    new.problem = Some(error);
                    break;
                }
                opened => opened?,
            };
            match tail.first_seq()? {
                // The next log exists, so this one never got a header.
                None if ids.last() != Some(&id) => {
                    is_first = false;
                    continue;
                }
                None => new.is_pending = true,
                // It begins after rows that are being ingested, or a crash left it.
                Some(first_seq) if first_seq > expected && !is_first => new.is_pending = true,
                Some(first_seq) if first_seq > expected => {
                    let path = storage.path_of(id, FileKind::Wal);
                    let what = format!(
                        "the log starts at operation {first_seq}, but the manifest ends at {}: run `sidebloom repair`",
                        expected - 1
                    );
                    new.problem = Some(Error::corruption(path, 0, what));
                }
                Some(first_seq) => {
                    let is_whole = is_first || first_seq == expected;
                    let mut log = FollowedLog::new(storage, id, expected, is_whole)?;
                    log.tail = Some(tail);
                    log.read(storage)?;
                    expected = log.next_seq;
                    is_first = false;
                    new.logs.push(log);
                    continue;
                }
            }
            break;
        }
        Ok(new)
    }

    /// Continues with new logs. Drops those below the floor and returns their memtables.
    pub fn extend(
        &mut self,
        new: Vec<FollowedLog>,
        state: &ManifestState,
        floor: FileId,
    ) -> Vec<Arc<Memtable>> {
        self.known = new.last().map_or(self.known, |last| last.id);
        self.logs.extend(new);
        let gone = self.logs.extract_if(.., |log| log.id < floor).map(|log| log.memtable).collect();
        self.next_seq = self.logs.last().map_or(state.last_seq + 1, |last| last.next_seq);
        gone
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> Vec<Arc<Memtable>> {
        self.logs.iter().rev().map(|log| Arc::clone(&log.memtable)).collect()
    }

    /// The last sequence number in segments and logs, except ingested rows.
    pub fn last_seq(&self) -> Seq {
        self.next_seq - 1
    }

    /// Whether segments may hold newer entries than the logs, as after a repair.
    pub fn reach_back(&self, live: &LiveSet) -> bool {
        let oldest = self.logs.iter().filter_map(|log| log.oldest).min();
        oldest.is_some_and(|oldest| oldest <= live.max_seq())
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

fn open_tail(storage: &Storage, id: FileId, read: Option<ReadTo>) -> Result<LogTail> {
    let path = storage.path_of(id, FileKind::Wal);
    LogTail::open(&*storage.fs, &path, id, storage.header.store_id, read)
}
