//! Recovery: from the files of a store to its state in memory.
//!
//! 1. The manifest names the segments. Each file must exist and have the length that the manifest says.
//! 2. The logs from the manifest's floor on are replayed in order into memtables. Full memtables become segments of level 0, and so does a
//!    large remainder. A small remainder is carried over: its batches are copied into the new log and synced, and its memtable stays in
//!    use. So a store that is opened often and briefly does not gain a segment each time.
//! 3. One manifest edit adds those segments, moves the floor past the old logs and reserves the file numbers seen.
//! 4. Unknown files are removed: outputs that were never published, logs below the floor, orphaned sidecars.
//!
//! A crash before the edit of step 3 leaves the old manifest and the old logs, and recovery starts again. The new log
//! may already exist; batches that it repeats are skipped. A crash after the edit only leaves files to remove.

use super::log::{ActiveLog, apply};
use super::names::is_unfinished;
use super::replay::replay_all;
use super::segment_builder::build_level0;
use super::storage::Storage;
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{Edit, LiveSegment, LiveSet, LogMark, MANIFEST_TMP, Manifest, ManifestState};
use crate::memtable::Memtable;
use crate::segment::SegmentFile;
use crate::wal;
use bytes::Bytes;
use std::sync::Arc;

/// A log that fills less than this much of a memtable, in bytes, is kept at closing and carried over at opening. Replaying it takes about
/// 10 ms, writing a segment about 30 ms, and every segment of level 0 costs each read a probe.
pub(crate) const LOG_KEPT_BYTES: usize = 1 << 20;

/// The contents of the replayed logs.
pub(crate) struct ReplayedLogs {
    /// Segments written from full memtables, not yet published.
    pub built: Vec<LiveSegment>,
    /// The remainder.
    pub table: Memtable,
    /// The batches of `table`, each with its first sequence number and its number of operations. Empty if they are too large to be
    /// carried over into the new log.
    pub batches: Vec<(Seq, Bytes, u32)>,
    pub next_seq: Seq,
    /// The sequence number of the oldest operation in the logs, if there is any.
    pub oldest: Option<Seq>,
}

/// A store that is being opened.
pub(crate) struct Recovery<'a> {
    pub storage: &'a Storage,
    /// The directory as it was before this open wrote anything.
    pub names: &'a [String],
}

impl Recovery<'_> {
    /// Step 1. Segments are opened on their first read. Sidecars are opened but not read; unusable ones are left out.
    pub fn open_segments(&self, state: &ManifestState) -> Result<LiveSet> {
        let storage = self.storage;
        let mut segments = Vec::with_capacity(state.segments.len());
        for meta in state.segments.values() {
            storage.check_segment_file(meta)?;
            let sidecar = if storage.filters_on() { storage.open_sidecar(meta).map(Arc::new) } else { None };
            let file = SegmentFile::new(Arc::clone(&storage.files), meta.id, meta.digest);
            segments.push(LiveSegment { meta: Arc::new(meta.clone()), file: Arc::new(file), sidecar });
        }
        Ok(LiveSet::new(segments))
    }

    /// Step 2. A read-only store replays everything into one memtable and writes nothing.
    pub fn replay_logs(&self, state: &ManifestState, live: &LiveSet) -> Result<ReplayedLogs> {
        let (storage, options) = (self.storage, &self.storage.options);
        let fresh = || Memtable::new(options.memtable_bytes);
        let (table, next_seq) = (fresh()?, state.last_seq + 1);
        let mut replayed =
            ReplayedLogs { built: Vec::new(), table, batches: Vec::new(), next_seq, oldest: None };
        let outcome =
            replay_all(&*storage.fs, &storage.dir, state, self.names, &mut |seq, payload, count| {
                apply(&replayed.table, &storage.header.hasher, seq, payload.clone());
                replayed.oldest.get_or_insert(seq);
                if options.read_only {
                    return Ok(());
                }
                match replayed.table.bytes() < LOG_KEPT_BYTES {
                    true => replayed.batches.push((seq, payload, count)),
                    false => replayed.batches = Vec::new(),
                }
                if replayed.table.bytes() as u64 > options.memtable_bytes {
                    let table = std::mem::replace(&mut replayed.table, fresh()?);
                    replayed.batches = Vec::new();
                    replayed.built.extend(build_level0(storage, &table, live, options.filter_policy)?);
                }
                Ok(())
            })?;
        replayed.next_seq = outcome.next_seq;
        Ok(replayed)
    }

    /// Steps 3 and 4. Returns the new log and the segments that were added.
    pub fn start_writing(
        &self,
        manifest: &mut Manifest,
        state: &mut ManifestState,
        live: &LiveSet,
        replayed: ReplayedLogs,
    ) -> Result<(ActiveLog, Vec<LiveSegment>)> {
        let storage = self.storage;
        let ReplayedLogs { mut built, table, mut batches, next_seq: end, .. } = replayed;
        let next_seq = end.max(live.max_seq() + 1); // After a repair, segments may be ahead of the logs.
        if batches.first().is_some_and(|(seq, _, _)| *seq <= live.max_seq()) {
            batches.clear(); // A memtable hides every segment; in level 0, the sequence numbers decide.
        }
        let first_seq = batches.first().map_or(next_seq, |(seq, _, _)| *seq);
        let active = match batches.is_empty() {
            true => {
                built.extend(build_level0(storage, &table, live, storage.options.filter_policy)?);
                Memtable::new(storage.options.memtable_bytes)?
            }
            false => table,
        };
        active.skip(next_seq - 1); // A repair may have left out the last numbers.
        let id = storage.take_id();
        let path = storage.path_of(id, FileKind::Wal);
        let mut writer = wal::LogWriter::create(&*storage.fs, &path, id, storage.header.store_id, first_seq)?;
        if !batches.is_empty() {
            carry_over(&mut writer, &batches, next_seq)?;
        }
        let synced = if batches.is_empty() { 0 } else { writer.len() };
        let edit = Edit {
            added: built.iter().map(|segment| (*segment.meta).clone()).collect(),
            log_floor: Some(id),
            last_seq: Some(first_seq - 1),
            next_id: Some(storage.next_id()),
            log_mark: Some(LogMark { log: id, bytes: synced, next_seq }),
            ..Edit::default()
        };
        storage.fs.sync_dir(&storage.dir)?;
        state.apply(&edit).map_err(Error::Internal)?;
        manifest.append(&edit, state)?;
        self.remove_unknown(state, id);
        Ok((ActiveLog::new(writer, id, Arc::new(active), next_seq), built))
    }

    /// Removes the files that an earlier crash left.
    fn remove_unknown(&self, state: &ManifestState, log_floor: FileId) {
        let unknown = self.names.iter().filter(|name| match FileKind::parse(name) {
            Some((id, FileKind::Wal)) => id < log_floor,
            Some((id, _)) => !state.segments.contains_key(&id),
            // The manifest's temporary file was overwritten and renamed by now.
            None => is_unfinished(name) && *name != MANIFEST_TMP,
        });
        for name in unknown {
            tracing::info!(name, "removing an unknown file");
            if let Err(error) = self.storage.fs.remove(&self.storage.dir.join(name)) {
                tracing::warn!(%error, "cannot remove an unknown file; the next open will retry");
            }
        }
    }
}

/// Copies the batches of earlier logs into a new one, with the gaps that a repair left between them, and syncs it.
fn carry_over(writer: &mut wal::LogWriter, batches: &[(Seq, Bytes, u32)], next_seq: Seq) -> Result<()> {
    for run in batches.chunk_by(|(seq, _, count), (next, _, _)| seq + Seq::from(*count) == *next) {
        let records: Vec<wal::LogRecord<'_>> = run
            .iter()
            .map(|(seq, payload, count)| wal::LogRecord { first_seq: *seq, count: *count, payload })
            .collect();
        if let Some(first) = records.first().filter(|first| first.first_seq != writer.next_seq()) {
            writer.append_gap(first.first_seq)?;
        }
        writer.append_group(&records)?;
    }
    if writer.next_seq() != next_seq {
        writer.append_gap(next_seq)?;
    }
    writer.sync()
}
