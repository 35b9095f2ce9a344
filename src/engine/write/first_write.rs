//! Starts a log, which replaces those of earlier opens: at the first write after a clean close, otherwise
//! within the open.
//!
//! 1. A new log is created. If little is in memory, its batches are copied into the log and synced, and the
//!    memtable stays in use. Otherwise the memtable becomes a level-0 segment. So a store that is opened
//!    often and briefly does not gain a segment each time.
//! 2. One manifest edit adds that segment, moves the log floor to the new log and reserves the file numbers
//!    seen. The manifest is rewritten before its first edit, since what was read from it may not be durable.
//! 3. Unknown files are removed: outputs that were never published, logs below the floor, orphaned sidecars.
//!
//! A crash before the edit leaves the old manifest and the old logs. The new log may already exist; a replay
//! skips the batches that it repeats. A crash after the edit only leaves files to remove. If a step fails,
//! the write gets its error, and the next write tries again.

use super::Writer;
use super::log::{ActiveLog, InheritedLogs};
use crate::engine::publish::{FlushedMemtable, LiveSetChange};
use crate::engine::storage::flushed::build_level0;
use crate::error::Result;
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::LogMark;
use crate::memtable::Memtable;
use crate::wal::{LogRecord, LogWriter};
use bytes::Bytes;
use std::sync::Arc;

impl Writer {
    #[cold]
    pub(super) fn start_log_of_its_own(&self, inherited: &mut InheritedLogs) -> Result<ActiveLog> {
        self.shared.check_writable()?;
        let (id, writer) = match inherited.replacement.take() {
            Some(replacement) => replacement,
            None => self.create_replacement(inherited)?,
        };
        match self.publish_replacement(inherited, id, &writer) {
            Ok(memtable) => {
                self.remove_unknown(inherited);
                Ok(ActiveLog::new(writer, id, memtable, inherited.next_seq))
            }
            Err(error) => {
                // Intact, but the manifest may or may not name it: the next attempt uses it.
                inherited.replacement = Some((id, writer));
                Err(error)
            }
        }
    }

    /// Creates the new log with the batches carried over.
    fn create_replacement(&self, inherited: &InheritedLogs) -> Result<(FileId, LogWriter)> {
        let storage = &self.shared.storage;
        let id = storage.take_id();
        let path = storage.path_of(id, FileKind::Wal);
        let (first_seq, store_id) = (inherited.first_seq(), storage.header.store_id);
        LogWriter::create(&*storage.fs, &path, id, store_id, first_seq)
            .and_then(|mut writer| {
                if !inherited.batches.is_empty() {
                    carry_over(&mut writer, &inherited.batches, inherited.next_seq)
                        .inspect_err(|_| storage.remove_if_there(&path))?; // No manifest names it.
                }
                Ok((id, writer))
            })
            .inspect_err(|e| self.shared.count_shortage(e))
            .map_err(|e| self.shared.fail(e))
    }

    /// Moves the manifest to the new log. Returns the memtable that belongs to it.
    fn publish_replacement(
        &self,
        inherited: &mut InheritedLogs,
        id: FileId,
        writer: &LogWriter,
    ) -> Result<Arc<Memtable>> {
        let (replayed, carried) = (&inherited.memtable, !inherited.batches.is_empty());
        let mut added = std::mem::take(&mut inherited.built);
        let memtable = if carried || replayed.is_empty() {
            Arc::clone(replayed)
        } else {
            let fresh = replayed.next(self.shared.storage.options.memtable_bytes)?;
            fresh.skip(inherited.next_seq - 1);
            let policy = self.filters.policy();
            let built = build_level0(&self.shared.storage, replayed, &self.shared.live(), policy);
            added.extend(built.map_err(|e| self.shared.fail(e))?);
            Arc::new(fresh)
        };
        added.iter().for_each(|segment| self.filters.note_missing_sidecar(segment));
        let synced = if carried { writer.len() } else { 0 };
        self.publisher.publish(LiveSetChange {
            added,
            flushed: Some(FlushedMemtable {
                table: Arc::clone(replayed),
                last_seq: Some(inherited.first_seq() - 1),
                next_log: id,
                next: Some(Arc::clone(&memtable)),
            }),
            log_mark: Some(LogMark { log: id, bytes: synced, next_seq: inherited.next_seq }),
            ..LiveSetChange::default()
        })?;
        self.shared.begin_epoch();
        Ok(memtable)
    }

    /// Removes the files that the manifest no longer needs.
    fn remove_unknown(&self, inherited: &InheritedLogs) {
        // Another process may have read a later version than this one found: an edit that was never synced.
        let version = self.publisher.with_state(|state| state.next_id.0).unwrap_or(u64::MAX);
        for name in &inherited.obsolete {
            tracing::info!(name, "removing an unknown file");
            match FileKind::parse(name) {
                // Processes that read an earlier version may need it.
                Some((id, FileKind::Segment | FileKind::Obsolete | FileKind::Filter)) => {
                    self.shared.storage.files.leftovers().remove(id, version);
                }
                // The publication has removed the logs.
                _ => self.shared.storage.remove_if_there(&self.shared.storage.dir.join(name)),
            }
        }
    }
}

/// Copies the batches of earlier logs into a new one, with the gaps that a repair left, and syncs it.
fn carry_over(writer: &mut LogWriter, batches: &[(Seq, Bytes, u32)], next_seq: Seq) -> Result<()> {
    for consecutive in batches.chunk_by(|(seq, _, count), (next, _, _)| seq + Seq::from(*count) == *next) {
        let records = consecutive.iter().map(|(seq, payload, count)| LogRecord {
            first_seq: *seq,
            count: *count,
            payload,
        });
        if let Some((first_seq, ..)) = consecutive.first().filter(|(seq, ..)| *seq != writer.next_seq()) {
            writer.append_gap(*first_seq)?;
        }
        writer.append_group(records)?;
    }
    if writer.next_seq() != next_seq {
        writer.append_gap(next_seq)?;
    }
    writer.sync()
}
