//! The logs that a follower reads, each with its memtable. `follow.rs` has the rules.

use super::log::apply;
use super::replay::{needed_logs, replay_all};
use super::storage::Storage;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{LiveSet, ManifestState};
use crate::memtable::Memtable;
use crate::wal::LogTail;
use std::sync::Arc;

/// Logs, oldest first. Only the last one grows.
pub(crate) struct FollowedLogs {
    logs: Vec<FollowedLog>,
    /// The last log that needs not be looked for any more.
    known: FileId,
    /// The sequence number after the last operation in segments and logs.
    next_seq: Seq,
}

pub(crate) struct FollowedLog {
    id: FileId,
    memtable: Arc<Memtable>,
    /// `None` if nothing more of it is read.
    tail: Option<LogTail>,
    /// Operations before this one are in earlier logs or in segments.
    expected: Seq,
    /// The first sequence number in the memtable.
    oldest: Option<Seq>,
    next_seq: Seq,
}

/// Logs that were found, and read as far as they go.
pub(crate) struct NewLogs {
    pub logs: Vec<FollowedLog>,
    /// Another one exists, but cannot be read yet.
    pub is_pending: bool,
}

impl FollowedLog {
    fn new(storage: &Storage, id: FileId, tail: Option<LogTail>, expected: Seq) -> Result<Self> {
        let memtable = Arc::new(Memtable::new(storage.options.memtable_bytes)?);
        Ok(FollowedLog { id, memtable, tail, expected, oldest: None, next_seq: expected })
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
    /// Reads the logs that the manifest needs as recovery does.
    pub fn replay(storage: &Storage, state: &ManifestState, names: &[String]) -> Result<Self> {
        let mut logs: Vec<FollowedLog> = Vec::new();
        let outcome =
            replay_all(&*storage.fs, &storage.dir, state, names, &mut |id, seq, payload, count| {
                if logs.last().is_none_or(|last| last.id != id) {
                    logs.push(FollowedLog::new(storage, id, None, seq)?);
                }
                if let Some(log) = logs.last_mut() {
                    apply(&log.memtable, storage, seq, payload, |_, _| ());
                    log.oldest.get_or_insert(seq);
                    log.next_seq = seq + Seq::from(count);
                }
                Ok(())
            })?;
        let all = needed_logs(state, names);
        let mut known = all.last().copied().unwrap_or(FileId(0));
        if let Some((id, offset)) = outcome.end {
            let has_header = offset > 0;
            if has_header {
                let tail = open_tail(storage, id, offset, outcome.next_seq)?;
                if logs.last().is_none_or(|last| last.id != id) {
                    logs.push(FollowedLog::new(storage, id, None, outcome.next_seq)?);
                }
                if let Some(log) = logs.last_mut() {
                    (log.tail, log.next_seq) = (Some(tail), outcome.next_seq);
                }
            } else {
                known = FileId(id.0.saturating_sub(1)); // It is being created.
            }
        }
        Ok(FollowedLogs { logs, known, next_seq: outcome.next_seq })
    }

    /// Reads what was appended to the last log, unless segments have all of it.
    pub fn read_last(&mut self, storage: &Storage, floor: FileId) -> Result<()> {
        if let Some(last) = self.logs.last_mut().filter(|last| last.id >= floor) {
            last.read(storage)?;
            self.next_seq = last.next_seq;
        }
        Ok(())
    }

    /// Reads the logs among `names` that are not followed yet. All others were read to their ends after the directory was listed.
    pub fn read_new(&self, storage: &Storage, state: &ManifestState, names: &[String]) -> Result<NewLogs> {
        let mut new = NewLogs { logs: Vec::new(), is_pending: false };
        let ids: Vec<FileId> = needed_logs(state, names).into_iter().filter(|id| *id > self.known).collect();
        let mut expected = match self.logs.last().is_some_and(|last| last.id >= state.log_floor) {
            true => self.next_seq,
            false => state.last_seq + 1,
        };
        let mut is_first = self.logs.iter().all(|log| log.id < state.log_floor);
        for id in ids.iter().copied() {
            let tail = open_tail(storage, id, 0, 0)?;
            match tail.first_seq()? {
                // The next one is there already: this one never got a header.
                None if ids.last() != Some(&id) => continue,
                None => new.is_pending = true,
                Some(first_seq) if first_seq < expected && !is_first => new.is_pending = true,
                Some(first_seq) if first_seq > expected => {
                    let path = storage.path_of(id, FileKind::Wal);
                    let what = format!(
                        "the log starts at operation {first_seq}, but what comes before it ends at {}: open the store for writing, or run \
                         `sidebloom repair`",
                        expected - 1
                    );
                    return Err(Error::corruption(path, 0, what));
                }
                Some(_) => {
                    let mut log = FollowedLog::new(storage, id, Some(tail), expected)?;
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

    /// Goes on with new logs, and without those below the floor. `last_seq` is what the manifest says.
    pub fn extend(&mut self, new: Vec<FollowedLog>, state: &ManifestState) {
        self.known = new.last().map_or(self.known, |last| last.id);
        self.logs.extend(new);
        self.logs.retain(|log| log.id >= state.log_floor);
        self.next_seq = self.logs.last().map_or(state.last_seq + 1, |last| last.next_seq);
    }

    /// The memtables, newest first.
    pub fn memtables(&self) -> Vec<Arc<Memtable>> {
        self.logs.iter().rev().map(|log| Arc::clone(&log.memtable)).collect()
    }

    /// The last sequence number in segments and logs, but for ingested rows.
    pub fn last_seq(&self) -> Seq {
        self.next_seq - 1
    }

    /// Whether segments may hold newer entries than the logs, as after a repair.
    pub fn reach_back(&self, live: &LiveSet) -> bool {
        let oldest = self.logs.iter().filter_map(|log| log.oldest).min();
        oldest.is_some_and(|oldest| oldest <= live.max_seq())
    }
}

fn open_tail(storage: &Storage, id: FileId, offset: u64, next: Seq) -> Result<LogTail> {
    let path = storage.path_of(id, FileKind::Wal);
    LogTail::open(&*storage.fs, &path, id, storage.header.store_id, offset, next)
}
