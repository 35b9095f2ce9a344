//! Bulk loading: sorted rows bypass the log and the memtable and go straight into segments of the level that fits them.

use super::inner::Inner;
use super::lock::lock;
use super::log::ActiveLog;
use super::metrics::add;
use super::pick::target_bytes;
use super::plan::LevelSizes;
use super::publish::LiveSetChange;
use super::segment_builder::{SegmentBuilder, UnpublishedSegments};
use crate::error::{Error, Result};
use crate::key::{EntryKind, Seq};
use crate::manifest::{LEVELS, LiveSegment};

/// The level that segments are built for. They move to the one that fits once their total size is known.
const LEVEL: u8 = 1;
/// The sequence number of ingested rows. Every write to the store is newer.
const BEFORE_ALL_WRITES: Seq = 0;

impl Inner {
    /// All rows become visible at once. `rows` is the caller's code and may use the store, so no lock is held while it runs.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.check_writable()?;
        self.check_empty(lock(&self.log).as_ref().ok_or(Error::ReadOnly)?)?;
        let mut built = UnpublishedSegments::new(&self.storage);
        self.build_sorted(rows, &mut built.segments)?;
        let bytes: u64 = built.segments.iter().map(|segment| segment.meta.file_bytes).sum();
        let raw_bytes = built.segments.iter().map(|segment| segment.meta.raw_bytes).sum();
        let fits = |level: &usize| target_bytes(*level, self.storage.options.segment_bytes) >= bytes;
        let level = (usize::from(LEVEL)..LEVELS).find(fits).unwrap_or(LEVELS - 1);
        let level = u8::try_from(level).unwrap_or(LEVEL);

        // Holding the log keeps other writers out, so a store that is empty now stays empty until the rows are published.
        let log = lock(&self.log);
        self.check_empty(log.as_ref().ok_or(Error::ReadOnly)?)?;
        add(&self.storage.metrics.flush_bytes, bytes);
        add(&self.storage.metrics.user_bytes, raw_bytes);
        let added = built.take().iter().map(|segment| segment.at_level(level)).collect();
        self.publish(LiveSetChange { added, removed: Vec::new(), flushed: None })
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
        built: &mut Vec<LiveSegment>,
    ) -> Result<()> {
        let mut sizes = LevelSizes::of(&self.live(), []);
        sizes.add(LEVEL, 1 << 20); // The number does not matter: all keys are on one level.
        let plan = lock(&self.filter_policy).plan(&sizes);
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut builder = SegmentBuilder::new(&self.storage, LEVEL, plan.as_ref())?;
            let before = built.last().map(|segment| segment.meta.largest.as_slice());
            self.fill(&mut builder, &mut rows, before)?;
            built.push(self.finish_segment(builder)?);
        }
        Ok(())
    }

    /// Appends rows until the segment is full. The segment's writer checks their order; this checks its first key against `before`.
    fn fill<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        builder: &mut SegmentBuilder<'_>,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        mut before: Option<&[u8]>,
    ) -> Result<()> {
        while builder.file_bytes() < self.storage.options.segment_bytes {
            let Some(row) = rows.next() else { break };
            let (key, value) = row?;
            let key = key.as_ref();
            if let Some(last) = before.take().filter(|last| *last >= key) {
                return Err(Error::key_out_of_order(key, last));
            }
            builder.append(key, BEFORE_ALL_WRITES, EntryKind::Put, value.as_ref())?;
        }
        Ok(())
    }
}
