//! Bulk loading: sorted rows straight into segments of the level that fits them, past the log and the memtable.

use super::build::SegmentBuilder;
use super::compact::at_level;
use super::core::{Core, lock};
use super::metrics::add;
use super::pick::target_bytes;
use super::policy::Shape;
use super::publish::Change;
use crate::error::{Error, Result};
use crate::key::{EntryKind, Seq};
use crate::manifest::{LEVELS, LiveSegment};

/// The level that segments are built for; they move to the one that fits when their number is known.
const LEVEL: u8 = 1;
/// The sequence number of ingested rows: whatever is written to the store is newer.
const BEFORE_ALL_WRITES: Seq = 0;

impl Core {
    /// Writers wait meanwhile. Nothing is visible before all of it is.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
    ) -> Result<()> {
        self.check_writable()?;
        let log = lock(&self.log);
        let log = log.as_ref().ok_or(Error::ReadOnly)?;
        {
            let view = self.view.load();
            if !log.active.is_empty() || !view.immutable.is_empty() || view.live.segments().next().is_some() {
                return Err(Error::InvalidArgument(
                    "only an empty store takes sorted rows in bulk: put these, or ingest into a new store"
                        .into(),
                ));
            }
        }
        let mut built = Vec::new();
        if let Err(error) = self.build_sorted(rows, &mut built) {
            built.iter().for_each(|segment| self.discard(segment.meta.id));
            return Err(error);
        }
        let bytes: u64 = built.iter().map(|segment| segment.meta.file_bytes).sum();
        add(&self.metrics.flush_bytes, bytes);
        add(&self.metrics.user_bytes, built.iter().map(|segment| segment.meta.raw_bytes).sum());
        let fits = |level: &usize| target_bytes(*level, self.options.segment_bytes) >= bytes;
        let level = (usize::from(LEVEL)..LEVELS).find(fits).unwrap_or(LEVELS - 1);
        let level = u8::try_from(level).unwrap_or(LEVEL);
        let added = built.iter().map(|segment| at_level(segment, level)).collect();
        self.publish(Change { added, removed: Vec::new(), flushed: None })
    }

    /// A segment that was begun is discarded on an error, finished ones are
    /// the caller's to discard.
    fn build_sorted<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        built: &mut Vec<LiveSegment>,
    ) -> Result<()> {
        let mut shape = Shape::of(&self.live(), []);
        shape.add(LEVEL, 1 << 20); // Any number: all keys are on one level.
        let plan = lock(&self.filter_policy).plan(&shape);
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let mut builder = SegmentBuilder::new(self, LEVEL, plan.as_ref())?;
            let id = builder.id();
            let before = built.last().map(|segment| segment.meta.largest.as_slice());
            match self.fill(&mut builder, &mut rows, before).and_then(|()| builder.finish()) {
                Ok(segment) => built.push(segment),
                Err(error) => {
                    self.discard(id);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Appends rows until the segment is full. Their order is checked by the segment's writer, and here for its first key.
    fn fill<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        builder: &mut SegmentBuilder<'_>,
        rows: &mut dyn Iterator<Item = Result<(K, V)>>,
        mut before: Option<&[u8]>,
    ) -> Result<()> {
        while builder.file_bytes() < self.options.segment_bytes {
            let Some(row) = rows.next() else { break };
            let (key, value) = row?;
            let key = key.as_ref();
            if let Some(last) = before.take().filter(|last| *last >= key) {
                let (key, last) = (key.escape_ascii(), last.escape_ascii());
                return Err(Error::InvalidArgument(format!(
                    "key \"{key}\" after key \"{last}\": keys must increase"
                )));
            }
            builder.append(key, BEFORE_ALL_WRITES, EntryKind::Put, value.as_ref())?;
        }
        Ok(())
    }
}
