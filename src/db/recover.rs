//! Opening a store: lock, manifest, segments, logs; then, and only then, writes.
//!
//! 1. The manifest names the segments; each file must be there and have the length that the manifest says.
//! 2. The logs from the manifest's floor on are replayed in order into memtables. Full ones become level-0 segments, and so does a
//!    large rest. A small rest is carried over: copied into the new log, synced, and its memtable goes on. So a store that is opened
//!    often and for short does not get a segment each time.
//! 3. One manifest edit makes those segments live, moves the floor past the old logs and reserves the file numbers seen.
//! 4. Files that no one knows are removed: outputs that were never published, logs below the floor, orphaned sidecars.
//!
//! A crash before the edit of step 3 leaves the old manifest and the old logs: recovery starts again. The new log may be there too;
//! what it repeats of the old ones is skipped. A crash after the edit leaves only files to remove.

use super::core::Core;
use super::logs::replay_all;
use super::resume::Health;
use super::write::{Arena, Log};
use crate::error::{Error, Result};
use crate::id::{FileId, FileKind};
use crate::key::Seq;
use crate::manifest::{
    Edit, LiveSegment, LiveSet, LogMark, MANIFEST, MANIFEST_TMP, Manifest, ManifestState, SegmentMeta,
};
use crate::memtable::Memtable;
use crate::segment::SegmentFile;
use crate::wal;
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Name of the lock file.
pub(crate) const LOCK: &str = "LOCK";
/// Ending of a file that is renamed once it is complete.
pub(crate) const TEMPORARY: &str = ".tmp";

/// At closing and at opening, less than this stays in the log, in bytes of a memtable: replaying it takes about 10 ms, writing a
/// segment about 30, and every segment of level 0 costs each read a probe.
pub(crate) const LOG_KEPT_BYTES: usize = 1 << 20;

/// Whether a file has a name that a sidecar or a manifest has until it is complete.
fn is_unfinished(name: &str) -> bool {
    name == MANIFEST_TMP || name.strip_suffix(TEMPORARY).and_then(FileKind::parse).is_some()
}

/// What the replayed logs came to.
pub(crate) struct Replayed {
    /// Full memtables, already written as segments; not yet published.
    pub built: Vec<LiveSegment>,
    /// The rest.
    pub table: Memtable,
    /// The batches of `table`, each with its first sequence number and its number of operations; empty when they are too large to be
    /// carried over into the next log.
    pub batches: Vec<(Seq, Bytes, u32)>,
    pub next_seq: Seq,
    /// The sequence number of the oldest operation in the logs; `None` when they hold none.
    pub oldest: Option<Seq>,
}

/// Decides what the directory is before anything is touched: `true` for a store, `false` for a place where one can be made.
pub(crate) fn inspect(fs: &dyn crate::fs::Fs, path: &Path) -> Result<bool> {
    let not_a_store = |what: String| Err(Error::NotAStore { path: path.to_path_buf(), what });
    if fs.file_len(path)?.is_none() {
        return Ok(false);
    }
    let names = match fs.list(path) {
        Ok(names) => names,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotADirectory => {
            return not_a_store("it is a file, not a directory".into());
        }
        Err(error) => return Err(error),
    };
    if names.iter().any(|name| name == MANIFEST) {
        return Ok(true);
    }
    if names.iter().any(|name| FileKind::parse(name).is_some()) {
        return not_a_store("it has files of a store but no MANIFEST: `sidebloom repair` rebuilds it".into());
    }
    match names.iter().find(|name| *name != LOCK && !is_unfinished(name)) {
        Some(foreign) => not_a_store(format!("the directory holds other files ({foreign})")),
        None => Ok(false),
    }
}

/// Checks that a segment's file is there and has its length, without opening it.
pub(crate) fn check_file(core: &Core, meta: &SegmentMeta) -> Result<()> {
    let path = core.path_of(meta.id, FileKind::Segment);
    match core.fs.file_len(&path)? {
        None => {
            let what = "the manifest names this segment, but the file is missing: restore it, or run `sidebloom repair`";
            Err(Error::corruption(&path, 0, what))
        }
        Some(len) if len != meta.file_bytes => {
            let what = format!("the file has {len} bytes, the manifest says {}", meta.file_bytes);
            Err(Error::corruption(&path, len.min(meta.file_bytes), what))
        }
        Some(_) => Ok(()),
    }
}

impl Core {
    /// Step 1: the live set of a manifest's state. Segments are opened when they are read. Sidecars are opened, not read; unusable ones stay out.
    pub fn open_live(&self, state: &ManifestState) -> Result<LiveSet> {
        let mut segments = Vec::with_capacity(state.segments.len());
        for meta in state.segments.values() {
            check_file(self, meta)?;
            let sidecar = if self.filters_on() { self.open_sidecar(meta).map(Arc::new) } else { None };
            let file = SegmentFile::new(Arc::clone(&self.files), meta.id, meta.digest);
            segments.push(LiveSegment { meta: Arc::new(meta.clone()), file: Arc::new(file), sidecar });
        }
        Ok(LiveSet::new(segments))
    }

    /// Step 2. A read-only store keeps everything in one memtable and writes nothing.
    pub fn replay_logs(&self, state: &ManifestState, names: &[String]) -> Result<Replayed> {
        let fresh = || Memtable::new(self.options.memtable_bytes);
        let (table, next_seq) = (fresh()?, state.last_seq + 1);
        let mut replayed = Replayed { built: Vec::new(), table, batches: Vec::new(), next_seq, oldest: None };
        let outcome = replay_all(&*self.fs, &self.dir, state, names, &mut |seq, payload, count| {
            self.apply(&replayed.table, seq, payload.clone());
            replayed.oldest.get_or_insert(seq);
            if self.options.read_only {
                return Ok(());
            }
            match replayed.table.bytes() < LOG_KEPT_BYTES {
                true => replayed.batches.push((seq, payload, count)),
                false => replayed.batches = Vec::new(),
            }
            if replayed.table.bytes() as u64 > self.options.memtable_bytes {
                let table = std::mem::replace(&mut replayed.table, fresh()?);
                replayed.batches = Vec::new();
                replayed.built.extend(self.build_level0(&table)?);
            }
            Ok(())
        })?;
        replayed.next_seq = outcome.next_seq;
        Ok(replayed)
    }

    /// Steps 3 and 4: from here on the store takes writes. Returns the log for them.
    pub fn start_writing(
        &self,
        manifest: &mut Manifest,
        state: &mut ManifestState,
        live: &LiveSet,
        replayed: Replayed,
        names: &[String],
    ) -> Result<(Log, Vec<LiveSegment>)> {
        let Replayed { mut built, table, mut batches, next_seq: end, .. } = replayed;
        let next_seq = end.max(live.max_seq() + 1); // After a repair, segments may be ahead of the logs.
        if batches.first().is_some_and(|(seq, _, _)| *seq <= live.max_seq()) {
            batches.clear(); // A memtable answers before every segment; on level 0 the sequence numbers decide.
        }
        let first_seq = batches.first().map_or(next_seq, |(seq, _, _)| *seq);
        let active = match batches.is_empty() {
            true => {
                built.extend(self.build_level0(&table)?);
                Memtable::new(self.options.memtable_bytes)?
            }
            false => table,
        };
        let id = self.take_id();
        let path = self.path_of(id, FileKind::Wal);
        let mut writer = wal::LogWriter::create(&*self.fs, &path, id, self.header.store_id, first_seq)?;
        if !batches.is_empty() {
            carry(&mut writer, &batches, next_seq)?;
        }
        let synced = if batches.is_empty() { 0 } else { writer.len() };
        let mark = LogMark { log: id, bytes: synced, next_seq };
        let edit = Edit {
            added: built.iter().map(|segment| (*segment.meta).clone()).collect(),
            log_floor: Some(id),
            last_seq: Some(first_seq - 1),
            next_id: Some(FileId(self.next_id.load(Ordering::Relaxed))),
            log_mark: Some(mark),
            ..Edit::default()
        };
        self.fs.sync_dir(&self.dir)?;
        state.apply(&edit).map_err(Error::Internal)?;
        manifest.append(&edit, state)?;
        self.remove_unknown(state, id, names);
        let log = Log {
            writer,
            id,
            active: Arc::new(active),
            next_seq,
            arena: Arena::default(),
            sleep_debt: std::time::Duration::ZERO,
            health: Health::default(),
        };
        Ok((log, built))
    }

    /// Removes what an earlier crash left: `names` is the directory as it was before this opening wrote anything.
    fn remove_unknown(&self, state: &ManifestState, log_floor: FileId, names: &[String]) {
        let unknown = names.iter().filter(|name| match FileKind::parse(name) {
            Some((id, FileKind::Wal)) => id < log_floor,
            Some((id, _)) => !state.segments.contains_key(&id),
            // The manifest's has been written over and renamed by now.
            None => is_unfinished(name) && *name != MANIFEST_TMP,
        });
        for name in unknown {
            tracing::info!(name, "removing a file that the store does not know");
            if let Err(error) = self.fs.remove(&self.dir.join(name)) {
                tracing::warn!(%error, "a leftover file stays for now");
            }
        }
    }
}

/// Writes the batches of earlier logs into a new one, with the gaps that a repair has left between them, and syncs it.
fn carry(writer: &mut wal::LogWriter, batches: &[(Seq, Bytes, u32)], next_seq: Seq) -> Result<()> {
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

/// The least file number above every number in use or ever reserved. A file with the last number of all is no file of this store.
pub(crate) fn next_free_id(state: &ManifestState, names: &[String]) -> u64 {
    let seen =
        names.iter().filter_map(|name| FileKind::parse(name)).filter_map(|(id, _)| id.0.checked_add(1)).max();
    seen.unwrap_or(1).max(state.next_id.0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::StoreIdentity;

    #[test]
    fn a_file_with_the_last_of_all_numbers_leaves_numbers_for_new_files() {
        let state = ManifestState::new(StoreIdentity { store_id: 1, hasher: 2.into() });
        let names = ["000041.wal", "18446744073709551615.wal"].map(String::from);
        assert_eq!(next_free_id(&state, &names), 42);
    }
}
