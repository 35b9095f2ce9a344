//! Bulk loading: sorted rows bypass the log and the memtable and go straight into segments of the level that fits them.
//!
//! All rows have one sequence number, which the log leaves out, and a new log begins behind it. So a manifest that has lost them contradicts
//! that log, as it would after a flush, and the loss is noticed. If the publication fails, the log stays and the next attempt uses both again.

use super::inner::Inner;
use super::log::{ActiveLog, Log};
use super::metrics::add;
use super::pick::deepest_bytes_max;
use super::plan::LevelSizes;
use super::publish::{FlushedMemtable, LiveSetChange};
use super::segment_builder::{SegmentBuilder, UnpublishedSegments};
use crate::error::{Error, Result};
use crate::key::{EntryKind, Seq};
use crate::manifest::{LEVELS, LiveSegment};
use crate::sync::atomic::Ordering;
use crate::sync::lock;
use std::sync::Arc;

/// The level that segments are built for. They move to the one that fits once their total size is known.
const LEVEL: u8 = 1;

impl Inner {
    /// All rows become visible at once. `rows` is the caller's code and may use the store, so no lock is held while it runs.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.check_writable()?;
        let seq = self.reserve_number()?;
        let mut built = UnpublishedSegments::new(&self.storage);
        self.build_sorted(rows, seq, &mut built.segments)?;
        let bytes: u64 = built.segments.iter().map(|segment| segment.meta.file_bytes).sum();
        let raw_bytes = built.segments.iter().map(|segment| segment.meta.raw_bytes).sum();
        let fits = |level: &usize| deepest_bytes_max(*level, self.storage.options.segment_bytes) >= bytes;
        let level = (usize::from(LEVEL)..LEVELS).find(fits).unwrap_or(LEVELS - 1);
        let level = u8::try_from(level).unwrap_or(LEVEL);

        // Holding the log keeps other writers out, so a store that is empty now stays empty until the rows are published.
        let mut log = lock(&self.log);
        let log = self.sound_log(&mut log)?;
        self.check_empty(log)?;
        if !self.begins_behind_a_free_number(log)? {
            self.start_log(log)?;
        }
        add(&self.storage.metrics.flush_bytes, bytes);
        add(&self.storage.metrics.user_bytes, raw_bytes);
        let added = built.take().iter().map(|segment| segment.at_level(level)).collect();
        let before = FlushedMemtable {
            table: Arc::clone(&log.memtable), // It is empty.
            last_seq: Some(log.next_seq - 1),
            next_log: log.id,
        };
        self.publish(LiveSetChange { added, flushed: Some(before), ..LiveSetChange::default() })
    }

    /// The locked log, if the store takes writes. It may have failed while this thread waited for the lock.
    fn sound_log<'a>(&self, log: &'a mut Log) -> Result<&'a mut ActiveLog> {
        self.check_writable()?;
        let log = self.active_log(log)?;
        self.resume(log)?;
        Ok(log)
    }

    /// The sequence number of the rows, which the log skips.
    fn reserve_number(&self) -> Result<Seq> {
        let mut log = lock(&self.log);
        let log = self.sound_log(&mut log)?;
        self.check_empty(log)?;
        if self.begins_behind_a_free_number(log)? {
            return Ok(log.next_seq - 1);
        }
        let seq = log.next_seq;
        log.writer.append_gap(seq + 1).map_err(|e| self.fail_log(log, e))?;
        log.memtable.skip(seq);
        log.next_seq = seq + 1;
        self.visible.store(seq, Ordering::Release);
        Ok(seq)
    }

    /// Whether the log of an empty store holds nothing and begins behind a number that the manifest does not know: that of rows whose publication
    /// failed.
    fn begins_behind_a_free_number(&self, log: &ActiveLog) -> Result<bool> {
        let manifest = lock(&self.manifest);
        let (_, state) = manifest.as_ref().ok_or(Error::ReadOnly)?;
        Ok(log.writer.is_empty() && state.last_seq + 1 < log.next_seq)
    }

    fn check_empty(&self, log: &ActiveLog) -> Result<()> {
        let view = self.view.load();
        if log.memtable.is_empty() && view.immutable.is_empty() && view.live.segments().next().is_none() {
            return Ok(());
        }
        Err(Error::NotEmpty { path: self.storage.dir.clone() })
    }

    fn build_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        seq: Seq,
        built: &mut Vec<LiveSegment>,
    ) -> Result<()> {
        let mut sizes = LevelSizes::of(&self.live(), [], &self.storage.prefix_set());
        sizes.add_entries(LEVEL, 1 << 20); // The number does not matter: all keys are on one level.
        let plan = lock(&self.filter_policy).plan(&sizes);
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut builder = SegmentBuilder::new(&self.storage, LEVEL, plan.as_ref())?;
            let before = built.last().map(|segment| segment.meta.largest.as_slice());
            self.fill(&mut builder, &mut rows, seq, before)?;
            built.push(self.finish_segment(builder)?);
        }
        Ok(())
    }

    /// Appends rows until the segment is full. The segment's writer checks their order; this checks its first key against `before`.
    fn fill<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        builder: &mut SegmentBuilder<'_>,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        seq: Seq,
        mut before: Option<&[u8]>,
    ) -> Result<()> {
        while builder.file_bytes() < self.storage.options.segment_bytes {
            let Some(row) = rows.next() else { break };
            let (key, value) = row?;
            let key = key.as_ref();
            if let Some(last) = before.take().filter(|last| *last >= key) {
                return Err(Error::key_out_of_order(key, last));
            }
            builder.append(key, seq, EntryKind::Put, value.as_ref())?;
        }
        Ok(())
    }
}
