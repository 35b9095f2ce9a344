//! Recovery: from the files of a store to its state in memory.
//!
//! 1. The manifest names the segments, and the directory must list their files. Neither these nor their
//!    sidecars are read.
//! 2. The logs from the manifest's floor on are replayed in order into a memtable. A full memtable becomes a
//!    level-0 segment, as the options of its keyspaces say. After many of them, memtables grow.
//! 3. A new log replaces the old ones, as `write/first_write.rs` describes: at the first write if the store
//!    was closed cleanly, and at once otherwise, so that what readers see is durable.
//!
//! After a clean close, steps 1 and 2 write nothing. A crash before the end of step 3 leaves the old manifest
//! and logs, and recovery starts again.

use super::replay::{ReplayOutcome, replay_all};
use crate::engine::keyspaces::read_catalog::load_recovered;
use crate::engine::read::view::View;
use crate::engine::storage::Storage;
use crate::engine::storage::flushed::build_level0;
use crate::engine::storage::names::is_unfinished;
use crate::engine::storage::segment_builder::RANGE_BYTES_MAX;
use crate::engine::write::log::{InheritedLogs, apply};
use crate::error::Result;
use crate::id::{FileId, FileKind};
use crate::key::{HEADS_START, Seq};
use crate::live::{LiveSegment, LiveSet};
use crate::manifest::{MANIFEST_TMP, ManifestState};
use crate::memtable::Memtable;
use crate::segment::SegmentFile;
use crate::sidecar::Unusable;
use bytes::Bytes;
use std::collections::HashSet;
use std::sync::Arc;

/// If a log fills less than this much of a memtable, in bytes, a close keeps it and the first write carries
/// it over. Replaying it takes about 10 ms, writing a segment about 30 ms, and every level-0 segment costs
/// each read a probe.
pub(crate) const LOG_KEPT_BYTES: usize = 1 << 20;

/// This many memtables of a replay become segments at the options' size. An open store may hold that many.
const MEMTABLES_BY_OPTIONS: u32 = 3;
/// Each later memtable is twice as large as the one before, up to this size in bytes, or to the size in the
/// options if that is larger. So logs of a store that had larger memtables become a few segments, not
/// thousands: 64 MiB of logs, read with memtables of 16 KiB, became 3,092 segments, and opening took 65 s.
const REPLAYED_MEMTABLE_MAX: u64 = 64 << 20;

/// The size in bytes at which a replay memtable becomes a segment, after `built` others.
fn replayed_memtable_bytes(memtable_bytes: u64, built: usize) -> u64 {
    let doublings = u32::try_from(built + 1).unwrap_or(u32::MAX).saturating_sub(MEMTABLES_BY_OPTIONS);
    let doubled = memtable_bytes.saturating_mul(2u64.saturating_pow(doublings));
    doubled.min(REPLAYED_MEMTABLE_MAX.max(memtable_bytes))
}

/// The contents of the replayed logs.
pub(crate) struct ReplayedLogs {
    /// Segments written from full memtables, not yet published.
    pub built: Vec<LiveSegment>,
    /// The remainder.
    pub table: Arc<Memtable>,
    /// The batches of `table`, each with its first sequence number and its number of operations. Empty if
    /// they are too large to carry over into the new log.
    pub batches: Vec<(Seq, Bytes, u32)>,
    pub outcome: ReplayOutcome,
    /// The sequence number of the oldest operation in the logs, if there is any.
    pub oldest: Option<Seq>,
}

impl ReplayedLogs {
    /// Whether segments may hold newer entries than the logs, as after a repair.
    pub fn reach_back(&self, live: &LiveSet) -> bool {
        self.oldest.is_some_and(|oldest| oldest <= live.max_seq())
    }

    /// All rows of the store: those of the published segments and the replayed ones.
    pub fn view(&self, storage: &Storage, live: &Arc<LiveSet>) -> View {
        let live = match &*self.built {
            [] => Arc::clone(live),
            built => Arc::new(live.with(built.to_vec(), &[])),
        };
        View::new(Arc::clone(&self.table), live, false, storage.filter_use(), storage.prefixes.clone())
    }
}

/// A store that is being opened.
pub(crate) struct Recovery<'a> {
    pub storage: &'a Storage,
    /// The directory before this open wrote anything.
    pub names: &'a [String],
}

impl Recovery<'_> {
    /// Step 1. Segments and sidecars are opened on first use. Missing sidecars are left out.
    pub fn open_segments(&self, state: &ManifestState) -> Result<LiveSet> {
        let storage = self.storage;
        let there: HashSet<(FileId, FileKind)> =
            self.names.iter().filter_map(|name| FileKind::parse(name)).collect();
        let mut segments = Vec::with_capacity(state.segments.len());
        storage.clock.advance(state.time);
        for meta in state.segments.values() {
            if meta.expiries.count > 0 {
                storage.clock.note_expiring();
            }
            // A writer renames a segment that the next version does not have.
            let is_there = there.contains(&(meta.id, FileKind::Segment))
                || storage.options.follow && there.contains(&(meta.id, FileKind::Obsolete));
            if !is_there {
                return Err(storage.missing_segment(meta.id));
            }
            let sidecar = if !storage.filters_on() {
                None
            } else if there.contains(&(meta.id, FileKind::Filter)) {
                Some(storage.unopened_sidecar(meta))
            } else {
                if *meta.largest < *HEADS_START {
                    storage.report_unusable(meta.id, &Unusable::Missing);
                } // Otherwise the options of its keyspace decide: see `FilterKeeper::report_missing`.
                None
            };
            let file = SegmentFile::new(Arc::clone(&storage.files), meta.id, meta.digest);
            segments.push(LiveSegment { meta: Arc::new(meta.clone()), file: Arc::new(file), sidecar });
        }
        Ok(LiveSet::new(segments))
    }

    /// Step 2. A read-only store replays everything into one memtable.
    pub fn replay_logs(&self, state: &ManifestState, live: &Arc<LiveSet>) -> Result<ReplayedLogs> {
        let (storage, options) = (self.storage, &self.storage.options);
        let size = |built| replayed_memtable_bytes(options.memtable_bytes, built);
        let fresh = |built| Memtable::new(size(built)).map(Arc::new);
        let outcome = ReplayOutcome::default();
        let mut replayed =
            ReplayedLogs { built: Vec::new(), table: fresh(0)?, batches: Vec::new(), outcome, oldest: None };
        replayed.outcome =
            replay_all(&*storage.fs, &storage.dir, state, self.names, &mut |_, seq, payload, count| {
                apply(&replayed.table, storage, seq, payload.clone(), |_, _| ());
                replayed.oldest.get_or_insert(seq);
                if options.read_only {
                    return Ok(());
                }
                if replayed.table.bytes() < LOG_KEPT_BYTES {
                    replayed.batches.push((seq, payload, count));
                } else {
                    replayed.batches = Vec::new();
                }
                if replayed.table.bytes() as u64 > size(replayed.built.len())
                    || replayed.table.range_bytes() >= RANGE_BYTES_MAX
                {
                    replayed.batches = Vec::new();
                    load_recovered(storage, &replayed.view(storage, live));
                    let full = build_level0(storage, &replayed.table, live, options.filter_policy)?;
                    replayed.built.extend(full);
                    replayed.table = fresh(replayed.built.len())?;
                }
                Ok(())
            })?;
        Ok(replayed)
    }

    /// What the first write needs to know about the logs.
    pub fn inherit(&self, state: &ManifestState, live: &LiveSet, replayed: ReplayedLogs) -> InheritedLogs {
        // After a repair, segments may be ahead of the logs.
        let next_seq = replayed.outcome.next_seq.max(live.max_seq() + 1);
        // A memtable hides every segment; in level 0, the sequence numbers decide.
        let batches = if replayed.reach_back(live) { Vec::new() } else { replayed.batches };
        replayed.table.skip(next_seq - 1); // A repair may have left out the last numbers.
        InheritedLogs {
            built: replayed.built,
            memtable: replayed.table,
            batches,
            next_seq,
            obsolete: self.names.iter().filter(|name| self.is_obsolete(state, name)).cloned().collect(),
            replacement: None,
        }
    }

    /// Whether the last close was clean and left nothing to do: the manifest says that everything in the one
    /// log was synced, and no other file is left over. A publication that may not be durable leaves such a
    /// file, because it removes files last. So everything read from a settled store is durable.
    pub fn is_settled(&self, state: &ManifestState, live: &LiveSet, replayed: &ReplayedLogs) -> bool {
        let Some(mark) = state.log_mark.filter(|mark| mark.log >= state.log_floor) else { return false };
        let log = mark.log.file_name(FileKind::Wal);
        let is_left_over =
            |name: &String| *name != log && (self.is_obsolete(state, name) || name == MANIFEST_TMP);
        let ReplayOutcome { next_seq, left_out, torn, .. } = replayed.outcome;
        (next_seq, left_out, torn) == (mark.next_seq, false, false)
            && replayed.built.is_empty()
            && !replayed.reach_back(live)
            && !self.names.iter().any(is_left_over)
    }

    /// Whether a file is a log, or left over from an earlier crash.
    fn is_obsolete(&self, state: &ManifestState, name: &str) -> bool {
        match FileKind::parse(name) {
            Some((id, FileKind::Wal)) => id < self.storage.first_own_id,
            Some((id, _)) => !state.segments.contains_key(&id),
            // The manifest's temporary file is overwritten and renamed before any file is removed.
            None => is_unfinished(name) && name != MANIFEST_TMP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::{copy_store, fast_dir};
    use crate::{Db, Options};

    #[test]
    fn a_log_much_larger_than_a_memtable_becomes_few_segments() {
        let dir = fast_dir();
        let [path, copy] = ["store", "copy"].map(|name| dir.path().join(name));
        let db = Db::open(&path).unwrap();
        (0..4000u32).for_each(|n| db.put(n.to_be_bytes(), [b'v'; 500]).unwrap());
        copy_store(&path, &copy); // As after a crash, with 2 MiB of log.
        let small = Options::new().memtable_bytes(8 << 10);
        let small = Options { level0_trigger: usize::MAX, ..small }; // Nothing is compacted.
        let db = small.open(&copy).unwrap();
        db.put("behind", "them").unwrap();
        let segments = db.stats().levels.iter().map(|of| of.segments).sum::<usize>();
        assert!((3..=12).contains(&segments), "{segments} segments");
        assert_eq!(db.iter().count().unwrap(), 4001);
        assert!(db.verify().unwrap().is_ok());
    }

    #[test]
    fn the_first_memtables_of_a_replay_are_as_large_as_the_options_say() {
        let sizes: Vec<u64> = (0..30).map(|built| replayed_memtable_bytes(1 << 20, built)).collect();
        assert_eq!(sizes[..6], [1 << 20, 1 << 20, 1 << 20, 2 << 20, 4 << 20, 8 << 20]);
        assert_eq!((sizes[29], replayed_memtable_bytes(1 << 30, 29)), (64 << 20, 1 << 30));
    }
}
